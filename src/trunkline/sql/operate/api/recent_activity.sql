-- Returns what happened since a time: jobs that were created, claimed or ended, and events; the first row has the engine's time.
-- At most p_limit of each kind, the newest; null is all of them. Jobs that run smoothly leave no events, so a client makes
-- lines of both. Live jobs that were created lately are found by their ids, which begin with the time; those that ended by when
-- they did, which skips the partitions of other days. Reads the views, so a session of one tenant sees its own jobs. Read-only,
-- in one snapshot: a job is in one table only.
create or replace function trunkline.recent_activity(
  p_since timestamptz,
  p_task text default null,
  p_queue text default null,
  p_limit integer default 100
)
returns setof trunkline.activity
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
  v_first uuid := trunkline_internal.first_id(p_at => p_since);
  v_now trunkline.activity;
begin
  if p_since is null then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument', p_detail => jsonb_build_object('argument', 'p_since', 'must_be', 'a time')
    );
  end if;
  v_now.at := trunkline.clock();
  return next v_now;
  return query
  select
    null::timestamptz, null::text, j.job_id, j.state, j.task, j.queue, j.tenant, j.attempt, j.created_at, j.run_at,
    j.claimed_at, j.finished_at, j.worker, j.reason, j.last_error, null::jsonb
  from (
    (
      select j.*
      from trunkline.jobs as j
      where j.state in ('blocked', 'scheduled', 'ready', 'running')
        and j.job_id >= v_first
        and (p_task is null or j.task = p_task)
        and (p_queue is null or j.queue = p_queue)
      order by j.job_id desc
      limit p_limit
    )
    union all
    (
      select j.*
      from trunkline.jobs as j
      where j.state = 'running'
        and j.claimed_at >= p_since
        and (p_task is null or j.task = p_task)
        and (p_queue is null or j.queue = p_queue)
      order by j.claimed_at desc
      limit p_limit
    )
    union all
    (
      select j.*
      from trunkline.jobs as j
      where j.state in ('completed', 'cancelled', 'dead')
        and j.finished_at >= p_since
        and (p_task is null or j.task = p_task)
        and (p_queue is null or j.queue = p_queue)
      order by j.finished_at desc
      limit p_limit
    )
  ) as j;
  return query
  select
    e.at, e.kind, e.job_id, e.to_state, e.task, e.queue, e.tenant, e.attempt, null::timestamptz, null::timestamptz,
    null::timestamptz, null::timestamptz, e.worker, null::text, null::jsonb, e.detail
  from trunkline.events as e
  where e.at >= p_since and (p_task is null or e.task = p_task) and (p_queue is null or e.queue = p_queue)
  order by e.at desc
  limit p_limit;
end;
$$;
comment on function trunkline.recent_activity(timestamptz, text, text, integer) is 'Returns what happened since a time: jobs that were created, claimed or ended, and events; the first row has the engine''s time.';
