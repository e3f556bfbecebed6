-- Sets aside those of the given ready jobs that cost more than one of their limits can ever allow; returns how many.
-- ready -> blocked. They keep their place in the lane, and hold up nothing meanwhile. Locks the jobs in id order and
-- skips locked ones. Wakes workers that sleep on their queues, since jobs behind them may start now.
-- Called by claim for the heads it could not take, by set_limit and by the duty sweep_buckets.
create or replace function trunkline_internal.set_aside(p_jobs uuid[], p_now timestamptz)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_jobs uuid[];
  v_queues text[];
begin
  v_jobs := array(
    select w.job_id
    from trunkline_internal.waiting as w
    where w.job_id = any(p_jobs)
      and w.state = 'ready'
      and (trunkline_internal.exceeded_limit(
        p_cost => row(w.cost_requests, w.cost_tokens, w.cost_units, w.limit_ids, w.bucket_ids)::trunkline_internal.job_cost
      )).bucket is not null
    order by w.job_id
    for update of w skip locked
  );
  if cardinality(v_jobs) = 0 then
    return 0;
  end if;
  with moved as materialized (
    select w.job_id, w.sequence, w.queue, w.task, w.tenant, w.attempt, o.bucket, o.limit_id, o.unit, o.cost, o.most
    from trunkline_internal.waiting as w
    cross join lateral trunkline_internal.exceeded_limit(
      p_cost => row(w.cost_requests, w.cost_tokens, w.cost_units, w.limit_ids, w.bucket_ids)::trunkline_internal.job_cost
    ) as o
    where w.job_id = any(v_jobs) and w.state = 'ready' and o.bucket is not null
  ),
  kept as (
    insert into trunkline_internal.set_aside (job_id, bucket, limit_id, unit, cost, sequence, since, queue, task)
    select m.job_id, m.bucket, m.limit_id, m.unit, m.cost, m.sequence, p_now, m.queue, m.task from moved as m
  ),
  blocked as (
    update trunkline_internal.waiting as w
    set state = 'blocked', sequence = null, reason = 'cost_over_limit'
    where w.job_id = any(array(select m.job_id from moved as m))
  ),
  noted as (
    insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, actor, detail)
    select
      p_now, m.job_id, m.attempt, 'set_aside', 'blocked', m.task, m.queue, m.tenant, session_user,
      trunkline_internal.exceeded_detail(p_bucket => m.bucket, p_unit => m.unit, p_cost => m.cost, p_most => m.most)
    from moved as m
  )
  select array_agg(distinct m.queue) into v_queues from moved as m;
  perform trunkline_internal.wake_sleepers(p_queues => v_queues);
  perform trunkline_internal.notify_followers(p_ids => v_jobs);
  return cardinality(v_jobs);
end;
$$;
comment on function trunkline_internal.set_aside(uuid[], timestamptz) is 'Sets aside those of the given ready jobs that cost more than one of their limits can ever allow; returns how many.';
