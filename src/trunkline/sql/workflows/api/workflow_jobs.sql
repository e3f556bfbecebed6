-- Lists jobs of a workflow in the order of its steps and of their items, without bodies; p_from jobs are skipped.
-- Ended jobs are found by their rows in workflow_ends, because finished jobs have no index by workflow. Jobs that a map has
-- not inserted yet, and ended ones whose retention is over, are not listed.
create or replace function trunkline.workflow_jobs(
  p_workflow uuid,
  p_step text default null,
  p_states text[] default null,
  p_from integer default 0,
  p_limit integer default 100
)
returns setof trunkline.job_detail
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_place integer;
  v_since timestamptz := trunkline_internal.id_time(p_id => p_workflow) - interval '1 minute';
begin
  if p_limit is null or p_limit not between 1 and 1000 then
    perform trunkline_internal.refuse(
      p_name => 'limit_out_of_range', p_detail => jsonb_build_object('limit', p_limit, 'minimum', 1, 'maximum', 1000)
    );
  end if;
  perform trunkline_internal.visible_workflow(p_workflow => p_workflow);
  if p_step is not null then
    select s.place into v_place
    from trunkline_internal.workflow_steps as s
    where s.workflow_id = p_workflow and s.name = p_step;
    if not found then
      perform trunkline_internal.refuse(
        p_name => 'unknown_step', p_detail => jsonb_build_object('workflow', p_workflow, 'step', p_step)
      );
    end if;
  end if;
  return query
  select
    -- <job shape: job_detail of j until tenant>
    j.job_id, j.state, j.task, j.queue, j.priority, j.tenant,
    -- </job>
    null::jsonb, null::jsonb,
    -- <job shape: job_detail of j after result until last_error>
    j.attempt, j.failures, j.crashes, j.deferrals, j.max_attempts, j.created_at, j.run_at, j.claimed_at, j.heartbeat_at,
    j.lease_expires_at, j.hard_deadline, j.cancel_requested_at, j.finished_at, j.acknowledged_at, j.worker, j.progress,
    j.phase, j.message, j.reason, j.unique_key, j.correlation_id, j.retry_of, j.tags, j.last_error,
    -- </job>
    null::jsonb
    -- <job shape: job_detail of j after errors>
    , j.expires_at, j.error_group, j.workflow_id, j.workflow_step, j.workflow_item
    -- </job>
  from (
    select w.job_id, w.workflow_step, coalesce(w.workflow_item, 0) as item, w.state
    from trunkline_internal.waiting as w where w.workflow_id = p_workflow
    union all
    select r.job_id, r.workflow_step, coalesce(r.workflow_item, 0), 'running'
    from trunkline_internal.running as r where r.workflow_id = p_workflow
    union all
    select e.job_id, e.step, e.item, e.state
    from trunkline_internal.workflow_ends as e where e.workflow_id = p_workflow
  ) as i
  cross join lateral (
    select * from trunkline_internal.all_jobs as a where a.job_id = i.job_id and a.prune_by >= v_since
  ) as j
  where (v_place is null or i.workflow_step = v_place) and (p_states is null or i.state = any(p_states))
  order by i.workflow_step, i.item
  offset greatest(p_from, 0) limit p_limit;
end;
$$;
comment on function trunkline.workflow_jobs(uuid, text, text[], integer, integer) is 'Lists jobs of a workflow in the order of its steps and of their items, without bodies; p_from jobs are skipped.';
