-- Makes the jobs of steps whose dependencies have completed ready, or scheduled if they have a delay; returns how many. It never refuses.
-- blocked -> ready | scheduled, in the lane of jobs that were handed back, so that what has begun is finished before new work
-- of the same priority. Their numbers follow the order of steps and items. A delay, kept as the distance of run_at from
-- created_at, counts from now. Locked rows are left to the duty.
create or replace function trunkline_internal.unblock_jobs(p_workflow uuid, p_places integer[], p_now timestamptz)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_jobs uuid[];
  v_numbers bigint[];
  v_queues text[];
begin
  v_jobs := array(
    select w.job_id
    from trunkline_internal.waiting as w
    where w.workflow_id = p_workflow and w.workflow_step = any(p_places) and w.reason = 'dependency' and (w.state = 'blocked') is true
    order by w.workflow_step, w.workflow_item, w.job_id
    for update of w skip locked
  );
  if exists (
    select
    from trunkline_internal.waiting as w
    where w.workflow_id = p_workflow
      and w.workflow_step = any(p_places)
      and w.reason = 'dependency'
      and (w.state = 'blocked') is true
    offset cardinality(v_jobs)
  ) then
    perform trunkline_internal.mark_workflows(p_workflows => array[p_workflow], p_now => p_now);
  end if;
  if cardinality(v_jobs) = 0 then
    return 0;
  end if;
  v_numbers := array(select nextval('trunkline_internal.job_sequence') from generate_series(1, cardinality(v_jobs)));
  with changed as (
    update trunkline_internal.waiting as w
    set
      state = case when w.run_at > w.created_at then 'scheduled' else 'ready' end,
      sequence = case when w.run_at > w.created_at then null else u.number end,
      lane = case when w.run_at > w.created_at then w.lane else w.lane | 1 end,
      run_at = case when w.run_at > w.created_at then p_now + (w.run_at - w.created_at) else p_now end,
      reason = null
    from unnest(v_jobs, v_numbers) as u (job_id, number)
    where w.job_id = u.job_id
    returning w.queue, w.lane, w.run_at, w.state, w.task, w.job_id, w.attempt, w.tenant, w.bucket
  ),
  lanes as (
    insert into trunkline_internal.lanes (queue, lane)
    select distinct c.queue, c.lane
    from changed as c
    where not exists (select from trunkline_internal.lanes as l where l.queue = c.queue and l.lane = c.lane)
  ),
  noted as (
    insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, actor, detail)
    select
      p_now, c.job_id, c.attempt, 'unblocked', c.state, c.task, c.queue, c.tenant, session_user, jsonb_build_object('run_at', c.run_at)
    from changed as c
    join trunkline_internal.tasks as t on t.task = c.task and t.audit
  )
  select array_agg(distinct c.queue) filter (where c.run_at <= p_now + interval '1 minute')
  into v_queues
  from changed as c;
  perform trunkline_internal.open_buckets(p_jobs => v_jobs);
  if v_queues is not null then
    perform trunkline_internal.wake_sleepers(p_queues => v_queues);
  end if;
  perform trunkline_internal.notify_followers(p_ids => v_jobs);
  return cardinality(v_jobs);
end;
$$;
comment on function trunkline_internal.unblock_jobs(uuid, integer[], timestamptz) is 'Makes the jobs of steps whose dependencies have completed ready, or scheduled if they have a delay; returns how many. It never refuses.';
