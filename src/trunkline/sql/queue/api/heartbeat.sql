-- Extends the leases of a worker's running attempts in one statement; returns per job ok, cancel (requested) or lost.
-- running -> running. Skips rows that another call has locked: that call is ending the job, or the next heartbeat comes
-- in time. A call that records steps of the job has a weaker lock, which this one passes. A lease that has expired but was
-- not reclaimed yet is extended, but never past the hard deadline.
-- Returns cancel only if it records that with the attempt in the same transaction, because complete relies on the record.
-- For a skipped row, the next heartbeat returns cancel.
create or replace function trunkline.heartbeat(p_worker text, p_jobs uuid[], p_attempts integer[])
returns setof trunkline.verdict
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
  v_attempts integer[];
  v_jobs uuid[];
  v_lease interval := trunkline_internal.setting(p_name => 'lease')::interval;
  v_now timestamptz;
  v_scope text := trunkline.tenant_scope();
begin
  perform trunkline_internal.check_batch(
    p_worker => p_worker, p_jobs => p_jobs, p_attempts => p_attempts, p_others => '{}'
  );
  select array_agg(a.job_id), array_agg(a.attempt)
  into v_jobs, v_attempts
  from (
    select a.job_id, a.attempt from unnest(p_jobs, p_attempts) as a (job_id, attempt) order by a.job_id, a.attempt
  ) as a;
  v_now := trunkline.clock();
  -- Uses arrays instead of joins, as complete does.
  with mine as materialized (
    select r.job_id
    from trunkline_internal.running as r
    where r.job_id = any(v_jobs)
      and r.attempt = v_attempts[width_bucket(r.job_id, v_jobs)]
      and r.worker = p_worker
      and (r.hard_deadline > v_now or r.cancel_requested_at is not null)
      and (v_scope is null or r.tenant = v_scope)
    order by r.job_id
    for no key update of r skip locked
  )
  update trunkline_internal.running as r
  set
    heartbeat_at = greatest(v_now, r.claimed_at),
    lease_expires_at = least(
      greatest(v_now, r.claimed_at)
        + coalesce((select t.lease from trunkline_internal.tasks as t where t.task = r.task), v_lease),
      r.hard_deadline
    ),
    cancel_answered_at = case
      when r.cancel_requested_at is not null then coalesce(r.cancel_answered_at, v_now)
    end
  where r.job_id = any(array(select m.job_id from mine as m));
  return query
  select
    a.job_id,
    a.attempt,
    case
      when r.job_id is null then 'lost'
      when r.cancel_answered_at is not null then 'cancel'
      when r.hard_deadline <= v_now then 'lost'
      else 'ok'
    end,
    case
      when r.job_id is not null then 'running'
      else trunkline_internal.lost_state(p_job => a.job_id, p_scope => v_scope)
    end,
    r.lease_expires_at
  from unnest(p_jobs, p_attempts) with ordinality as a (job_id, attempt, place)
  left join lateral (
    select r.job_id, r.cancel_answered_at, r.hard_deadline, r.lease_expires_at
    from trunkline_internal.running as r
    where r.job_id = a.job_id
      and r.attempt = a.attempt
      and r.worker = p_worker
      and (v_scope is null or r.tenant = v_scope)
    limit 1
  ) as r on true
  order by a.place;
end;
$$;
comment on function trunkline.heartbeat(text, uuid[], integer[]) is 'Extends the leases of a worker''s running attempts in one statement; returns per job ok, cancel (requested) or lost.';
