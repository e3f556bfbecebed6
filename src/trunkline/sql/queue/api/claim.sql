-- Takes up to p_limit ready jobs for a worker, each under a lease and a new attempt number, best first.
-- ready -> running; scheduled -> ready for due jobs. Queues are served in the order given (null: all). Within a queue
-- the higher priority goes first, within a priority jobs that were handed back, then by sequence.
-- Waits for no lock: it skips rows that another call has locked, and a wide limit it cannot lock within 40 ms.
-- p_position is what the previous claim for the same queues and tasks returned, '{}' for the first one. The last row
-- carries the next position; if nothing was claimed, a single row without a job does. Without a position every claim
-- scans from the start. In a transaction that already had an id the position does not move.
-- {"behind": position} scans from the start up to that position, for jobs that rolled-back claims left, and returns
-- jobs only. It locks no newer job, which another claim can take: with an old snapshot the scan may take seconds.
-- At most p_limited of the jobs are limited: a charged job must start by start_by, one second later, or be released.
create or replace function trunkline.claim(
  p_worker text,
  p_queues text[] default null,
  p_limit integer default 1,
  p_tasks text[] default null,
  p_position jsonb default null,
  p_limited integer default null
)
returns setof trunkline.claimed_job
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_batch trunkline_internal.claim_batch;
  v_bodies jsonb[];
  v_large uuid[];
  v_lease interval;
  v_now timestamptz;
  v_row trunkline.claimed_job;
  v_scope text;
  v_start_by timestamptz;
begin
  v_scope := trunkline_internal.check_claim(
    p_worker => p_worker, p_queues => p_queues, p_limit => p_limit, p_tasks => p_tasks, p_limited => p_limited
  );
  if p_position is null then
    v_batch := trunkline_internal.claim_idle(
      p_worker => p_worker, p_queues => p_queues, p_limit => p_limit, p_tasks => p_tasks, p_scope => v_scope
    );
  end if;
  if p_position is not null or not v_batch.final then
    v_batch := trunkline_internal.claim_search(
      p_worker => p_worker, p_queues => p_queues, p_limit => p_limit, p_tasks => p_tasks, p_scope => v_scope,
      p_position => p_position, p_limited => p_limited
    );
  end if;
  if v_batch.tids is not null then
    v_lease := v_batch.lease;
    v_now := v_batch.claimed_at;
    v_start_by := v_now + interval '1 second';
    if v_batch.first_day is not null then
      -- Only claims with a large payload pay for opening the partitions of bodies.
      select array_agg(b.job_id), array_agg(b.body)
      into v_large, v_bodies
      from trunkline_internal.bodies as b
      where b.job_id = any(v_batch.jobs) and b.kind = 'payload' and b.day between v_batch.first_day and v_batch.last_day;
    end if;
    -- Returns rows directly from the insert, in the order of the array. It stays in this function: a statement that
    -- deleted, inserted and sorted stored each row three times, a sixth of the claim. Guarded by tests/plans.
    return query
    insert into trunkline_internal.running as r (
      claimed_at, lease_expires_at, hard_deadline, attempt, worker, audit,
      -- <job columns: waiting to running>
      job_id, task, queue, tenant, failures, max_attempts, deferrals, created_at, run_at, unique_key, correlation_id,
      retry_of, tags, last_error, payload, payload_day, crashes, sequence, lane, deferred_since, cost_requests, cost_tokens,
      cost_units, limit_ids, bucket_ids, expires_at, workflow_id, workflow_step, workflow_item
      -- </job>
    )
    select
      v_now,
      v_now + least(coalesce(t.lease, v_lease), coalesce(t.hard_limit, 4 * coalesce(t.lease, v_lease))),
      v_now + coalesce(t.hard_limit, 4 * coalesce(t.lease, v_lease)),
      w.attempt + 1, p_worker, coalesce(t.audit, false),
      -- <job values: w>
      w.job_id, w.task, w.queue, w.tenant, w.failures, w.max_attempts, w.deferrals, w.created_at, w.run_at, w.unique_key,
      w.correlation_id, w.retry_of, w.tags, w.last_error, w.payload, w.payload_day, w.crashes, w.sequence, w.lane,
      w.deferred_since, w.cost_requests, w.cost_tokens, w.cost_units, w.limit_ids, w.bucket_ids, w.expires_at, w.workflow_id,
      w.workflow_step, w.workflow_item
      -- </job>
    from unnest(v_batch.tids) as u (tid)
    join trunkline_internal.waiting as w on w.ctid = u.tid
    left join trunkline_internal.tasks as t on t.task = w.task
    returning
      -- <job shape: claimed_job of r in running until priority>
      r.job_id, r.attempt, r.task, r.queue, (r.lane >> 1)::integer,
      -- </job>
      case when r.payload_day is null then r.payload else v_bodies[array_position(v_large, r.job_id)] end,
      -- <job shape: claimed_job of r in running after payload until last_error>
      r.tenant, r.correlation_id, r.tags, r.failures::integer, r.deferrals, r.max_attempts::integer, r.created_at, r.run_at,
      r.claimed_at, r.lease_expires_at, r.hard_deadline, r.last_error,
      -- </job>
      case when r.job_id = v_batch.bearer then v_batch.position end,
      case when r.bucket_ids is not null then v_start_by end
      -- <job shape: claimed_job of r in running after start_by>
      , r.workflow_id
      -- </job>
    ;
    delete from trunkline_internal.waiting as w where w.ctid = any(v_batch.tids);
    if exists (select from trunkline_internal.followed) then
      perform trunkline_internal.notify_followers(p_ids => v_batch.jobs);
    end if;
    if v_batch.keyed is not null or v_batch.audited then
      perform trunkline_internal.claim_follow_up(p_batch => v_batch);
    end if;
  end if;
  -- If no job carries the position, an extra row does.
  if v_batch.position is not null and v_batch.bearer is null then
    v_row.position := v_batch.position;
    return next v_row;
  end if;
end;
$$;
comment on function trunkline.claim(text, text[], integer, text[], jsonb, integer) is 'Takes up to p_limit ready jobs for a worker, each under a lease and a new attempt number, best first.';
