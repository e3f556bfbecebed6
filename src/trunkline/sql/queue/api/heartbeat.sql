-- Extends the leases of a worker's running attempts, all in one statement; answers per job ok, cancel (asked for) or lost.
-- running -> running. Skips rows another call holds: whoever holds one is ending that job, or the
-- next heartbeat comes in time. A lease that ran out but was not taken yet lives on; past the hard
-- deadline nothing does.
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
  v_lease interval := trunkline_internal.setting(p_name => 'lease')::interval;
  v_now timestamptz;
  v_scope text := trunkline.tenant_scope();
begin
  perform trunkline_internal.check_batch(
    p_worker => p_worker, p_jobs => p_jobs, p_attempts => p_attempts, p_others => '{}'
  );
  v_now := trunkline.clock();
  with mine as materialized (
    select r.ctid as tid, r.task
    from trunkline_internal.running as r
    join unnest(p_jobs, p_attempts) as a (job_id, attempt) on a.job_id = r.job_id and a.attempt = r.attempt
    where r.worker = p_worker
      and r.hard_deadline > v_now
      and (v_scope is null or r.tenant = v_scope)
    order by r.job_id
    for update of r skip locked
  )
  update trunkline_internal.running as r
  set
    heartbeat_at = greatest(v_now, r.claimed_at),
    lease_expires_at = least(greatest(v_now, r.claimed_at) + coalesce(t.lease, v_lease), r.hard_deadline)
  from mine as m
  left join trunkline_internal.tasks as t on t.task = m.task
  where r.ctid = m.tid;
  return query
  select
    a.job_id,
    a.attempt,
    case
      when r.job_id is null then 'lost'
      when r.cancel_requested_at is not null then 'cancel'
      when r.hard_deadline <= v_now then 'lost'
      else 'ok'
    end,
    case when r.job_id is not null then 'running' end,
    r.lease_expires_at
  from unnest(p_jobs, p_attempts) with ordinality as a (job_id, attempt, place)
  left join trunkline_internal.running as r
    on r.job_id = a.job_id and r.attempt = a.attempt and r.worker = p_worker and (v_scope is null or r.tenant = v_scope)
  order by a.place;
end;
$$;
comment on function trunkline.heartbeat(text, uuid[], integer[]) is 'Extends the leases of a worker''s running attempts, all in one statement; answers per job ok, cancel (asked for) or lost.';
