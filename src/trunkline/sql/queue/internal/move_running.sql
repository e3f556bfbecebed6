-- Carries out where locked running jobs go when an attempt ends without success: back to waiting, to dead or to cancelled, with one event each.
-- running -> ready | scheduled | blocked (suspended) | dead | cancelled. The caller has locked the rows in id order and decided.
-- Notifies workers that sleep on a queue into which a job comes back within a minute, or in which one may wait for what
-- came free.
create or replace function trunkline_internal.move_running(p_moves trunkline_internal.move[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_costly trunkline_internal.costly_attempt[];
  v_freed trunkline_internal.costly_attempt[];
  v_jobs uuid[] := array(select m.job_id from unnest(p_moves) as m);
  v_late trunkline_internal.costly_attempt[];
  v_limited text[];
  v_soon uuid[] := array(
    select m.job_id
    from unnest(p_moves) as m
    where m.to_state in ('ready', 'scheduled') and m.run_at <= p_now + interval '1 minute'
  );
  -- The end time of a lost attempt is not known, so it is not checked for late calls.
  v_lost uuid[] := array(select m.job_id from unnest(p_moves) as m where m.kind = 'lost');
  v_steps trunkline_internal.workflow_end[];
  v_front uuid[] := array(select m.job_id from unnest(p_moves) as m where m.front and (m.to_state = 'ready' or m.kind = 'suspended'));
begin
  -- Their capacity comes free with them, and they may come back to wait for it.
  select
    array_agg(r.queue) filter (where r.bucket_ids is not null),
    array_agg(row(
      -- <job shape: costly_attempt of r in running>
      r.job_id, r.attempt, r.task, r.tenant, r.cost_requests, r.cost_tokens, r.cost_units, r.limit_ids, r.bucket_ids,
      r.claimed_at
      -- </job>
    )::trunkline_internal.costly_attempt)
      filter (where r.bucket_ids is not null),
    array_agg(row(
      -- <job shape: costly_attempt of r in running>
      r.job_id, r.attempt, r.task, r.tenant, r.cost_requests, r.cost_tokens, r.cost_units, r.limit_ids, r.bucket_ids,
      r.claimed_at
      -- </job>
    )::trunkline_internal.costly_attempt)
      filter (where r.cost_tokens > 0 or r.cost_units > 0),
    -- The shortest run time that note_late counts.
    array_agg(row(
      -- <job shape: costly_attempt of r in running>
      r.job_id, r.attempt, r.task, r.tenant, r.cost_requests, r.cost_tokens, r.cost_units, r.limit_ids, r.bucket_ids,
      r.claimed_at
      -- </job>
    )::trunkline_internal.costly_attempt)
      filter (where r.bucket_ids is not null and r.claimed_at < p_now - interval '15 seconds' and r.job_id <> all(v_lost)),
    array_agg(row(
      r.workflow_id, r.workflow_step, r.workflow_item, r.job_id,
      (select m.to_state from unnest(p_moves) as m where m.job_id = r.job_id),
      r.cost_requests, r.cost_tokens, r.cost_units, r.limit_ids, r.bucket_ids
    )::trunkline_internal.workflow_end)
      filter (where r.workflow_id is not null)
  into v_limited, v_freed, v_costly, v_late, v_steps
  from trunkline_internal.running as r
  where r.job_id = any(v_jobs) and (r.bucket_ids is not null or r.workflow_id is not null);
  v_steps := array(select s from unnest(v_steps) as s where s.state in ('dead', 'cancelled'));
  if v_limited is not null then
    perform trunkline_internal.note_failures(p_moves => p_moves, p_now => p_now);
  end if;
  insert into trunkline_internal.lanes (queue, lane)
  select distinct r.queue, (r.lane | 1)::smallint
  from trunkline_internal.running as r
  where r.job_id = any(v_front)
    and not exists (select from trunkline_internal.lanes as l where l.queue = r.queue and l.lane = (r.lane | 1));
  with taken as (
    delete from trunkline_internal.running as r where r.job_id = any(v_jobs) returning r.*
  ),
  gone as materialized (
    select
      r.*, m.to_state, m.run_at as next_run_at, m.failures as new_failures, m.crashes as new_crashes,
      m.deferrals as new_deferrals, m.front, m.reason, m.error, m.kind, m.detail
    from taken as r
    join unnest(p_moves) as m on m.job_id = r.job_id
  ),
  -- Ordered by the old number, so that jobs handed back together keep their order.
  back as (
    insert into trunkline_internal.waiting (
      state, reason, run_at, failures, crashes, deferrals, last_error, sequence, deferred_since, lane,
      -- <job columns: running to waiting>
      job_id, task, queue, tenant, attempt, max_attempts, created_at, unique_key, correlation_id, retry_of, tags, payload,
      payload_day, bucket, cost_requests, cost_tokens, cost_units, limit_ids, bucket_ids, expires_at, workflow_id,
      workflow_step, workflow_item
      -- </job>
    )
    select
      g.to_state, g.reason, g.next_run_at, g.new_failures, g.new_crashes, g.new_deferrals,
      coalesce(trunkline_internal.bounded_error(p_error => g.error, p_bytes => 1024), g.last_error),
      case when g.to_state = 'ready' then nextval('trunkline_internal.job_sequence') end,
      case when g.new_deferrals > 0 then coalesce(g.deferred_since, p_now) end,
      case when g.front and (g.to_state = 'ready' or g.kind = 'suspended') then g.lane | 1 else (g.lane >> 1) * 2 end,
      -- <job values: g>
      g.job_id, g.task, g.queue, g.tenant, g.attempt, g.max_attempts, g.created_at, g.unique_key, g.correlation_id,
      g.retry_of, g.tags, g.payload, g.payload_day, g.bucket_ids[1], g.cost_requests, g.cost_tokens, g.cost_units,
      g.limit_ids, g.bucket_ids, g.expires_at, g.workflow_id, g.workflow_step, g.workflow_item
      -- </job>
    from (select g.* from gone as g where g.to_state in ('ready', 'scheduled', 'blocked') order by g.sequence) as g
  ),
  buried as (
    insert into trunkline_internal.dead (
      died_at, reason, failures, crashes, deferrals, last_error, error_group,
      -- <job columns: running to dead>
      job_id, task, queue, priority, tenant, attempt, max_attempts, created_at, run_at, claimed_at, heartbeat_at, worker,
      unique_key, correlation_id, retry_of, tags, payload, payload_day, cost_requests, cost_tokens, cost_units, limit_ids,
      bucket_ids, expires_at, workflow_id, workflow_step, workflow_item
      -- </job>
    )
    select
      p_now, g.reason, g.new_failures, g.new_crashes, g.new_deferrals,
      coalesce(trunkline_internal.bounded_error(p_error => g.error, p_bytes => 1024), g.last_error),
      trunkline_internal.error_group_of(
        p_error => coalesce(trunkline_internal.bounded_error(p_error => g.error, p_bytes => 1024), g.last_error),
        p_reason => g.reason
      ),
      -- <job values: g>
      g.job_id, g.task, g.queue, g.lane >> 1, g.tenant, g.attempt, g.max_attempts, g.created_at, g.run_at, g.claimed_at,
      g.heartbeat_at, g.worker, g.unique_key, g.correlation_id, g.retry_of, g.tags, g.payload, g.payload_day, g.cost_requests,
      g.cost_tokens, g.cost_units, g.limit_ids, g.bucket_ids, g.expires_at, g.workflow_id, g.workflow_step, g.workflow_item
      -- </job>
    from gone as g
    where g.to_state = 'dead'
  ),
  ended as (
    insert into trunkline_internal.finished (
      state, finished_at, reason, failures, deferrals, last_error,
      -- <job columns: running to finished>
      job_id, task, queue, priority, tenant, attempt, max_attempts, created_at, run_at, claimed_at, heartbeat_at, worker,
      unique_key, correlation_id, retry_of, tags, payload, payload_day, expires_at, workflow_id, workflow_step, workflow_item
      -- </job>
    )
    select
      'cancelled', p_now, g.reason, g.new_failures, g.new_deferrals,
      coalesce(trunkline_internal.bounded_error(p_error => g.error, p_bytes => 1024), g.last_error),
      -- <job values: g>
      g.job_id, g.task, g.queue, g.lane >> 1, g.tenant, g.attempt, g.max_attempts, g.created_at, g.run_at, g.claimed_at,
      g.heartbeat_at, g.worker, g.unique_key, g.correlation_id, g.retry_of, g.tags, g.payload, g.payload_day, g.expires_at,
      g.workflow_id, g.workflow_step, g.workflow_item
      -- </job>
    from gone as g
    where g.to_state = 'cancelled'
  ),
  freed as (
    delete from trunkline_internal.unique_keys as k
    where k.job_id = any(array(
      select g.job_id from gone as g where g.unique_key is not null and g.to_state in ('dead', 'cancelled')
    ))
  )
  insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, worker, actor, detail)
  select
    p_now, g.job_id, g.attempt, g.kind, g.to_state, g.task, g.queue, g.tenant, g.worker, session_user,
    jsonb_strip_nulls(jsonb_build_object('reason', g.reason, 'error', g.error, 'run_at', g.next_run_at) || coalesce(g.detail, '{}'::jsonb))
  from gone as g;
  if v_limited is not null then
    perform trunkline_internal.open_buckets(p_jobs => v_jobs);
    if v_late is not null then
      perform trunkline_internal.note_late(p_ended => v_late, p_now => p_now);
    end if;
    if v_costly is not null then
      perform trunkline_internal.record_estimates(p_ended => v_costly, p_now => p_now);
    end if;
  end if;
  -- Also of jobs without limits: one may have ended that had asked for a grant and still held it.
  perform trunkline_internal.wake_freed(p_jobs => v_jobs, p_queues => coalesce(v_limited, array[]::text[]), p_ended => v_freed);
  if cardinality(v_soon) > 0 and exists (select from trunkline_internal.sleepers as s) then
    perform trunkline_internal.wake_sleepers(p_queues => array(
      select distinct w.queue from trunkline_internal.waiting as w where w.job_id = any(v_soon)
    ));
  end if;
  if exists (select from trunkline_internal.followed) then
    perform trunkline_internal.notify_followers(p_ids => v_jobs);
  end if;
  -- Last, because the lock of a workflow comes after all rows and keys. A duty does not wait for it.
  if cardinality(v_steps) > 0 then
    perform trunkline_internal.end_workflow_jobs(p_ended => v_steps, p_now => p_now, p_wait => cardinality(v_lost) = 0);
  end if;
end;
$$;
comment on function trunkline_internal.move_running(trunkline_internal.move[], timestamptz) is 'Carries out where locked running jobs go when an attempt ends without success: back to waiting, to dead or to cancelled, with one event each.';
