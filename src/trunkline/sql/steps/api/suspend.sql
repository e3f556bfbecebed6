-- Puts running attempts back until what they wait for is there; returns one verdict per job.
-- running -> scheduled (a sleep, or a wait with a timeout) | blocked (no timeout) | ready (it is there already) | cancelled if
-- requested (T20). Failures, deferrals, the unique key and recorded steps stay; slots and grants become free. The waits are
-- those that begin_wait, begin_once and begin_jobs have stored for the attempt.
-- An event that is being sent is not visible yet, and its sender does not see the suspended job. So both take the lock of the
-- event. The sender may belong to a long transaction of an application: this call only tries for the lock, and the job
-- checks again within two seconds if the sender has it.
create or replace function trunkline.suspend(p_worker text, p_jobs uuid[], p_attempts integer[])
returns setof trunkline.verdict
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_locked uuid[];
  v_moves trunkline_internal.move[];
  v_now timestamptz;
  v_unsure uuid[];
begin
  perform trunkline_internal.check_batch(p_worker => p_worker, p_jobs => p_jobs, p_attempts => p_attempts, p_others => '{}');
  v_locked := trunkline_internal.lock_running(
    p_worker => p_worker, p_jobs => p_jobs, p_attempts => p_attempts, p_scope => trunkline.tenant_scope()
  );
  v_now := trunkline.clock();
  -- A separate statement: the next one sees every event whose lock was free.
  v_unsure := array(
    select w.job_id
    from trunkline_internal.job_waits as w
    where w.job_id = any(v_locked) and not trunkline_internal.share_wait(p_wait => w)
  );
  select array_agg(
    row(
      r.job_id,
      d.to_state,
      case d.to_state when 'scheduled' then d.due when 'ready' then v_now else r.run_at end,
      r.failures,
      r.crashes,
      r.deferrals,
      true,
      case d.to_state when 'cancelled' then coalesce(r.cancel_reason, 'cancelled') when 'ready' then 'resumed' else 'suspended' end,
      null,
      case when d.to_state = 'cancelled' then 'cancelled' else 'suspended' end,
      jsonb_build_object('waits', s.waits)
    )::trunkline_internal.move
    order by r.job_id
  )
  into v_moves
  from trunkline_internal.running as r
  cross join lateral (
    select
      coalesce(bool_or(trunkline_internal.is_wait_over(p_wait => w, p_now => v_now)), true) as is_over,
      min(w.until) as until,
      jsonb_agg(
        jsonb_strip_nulls(jsonb_build_object('kind', w.kind, 'name', w.name, 'address', w.address, 'until', w.until))
        order by w.place
      ) filter (where w.place is not null) as waits
    from trunkline_internal.job_waits as w
    where w.job_id = r.job_id and w.attempt = r.attempt
  ) as s
  cross join lateral (
    select
      least(s.until, case when r.job_id = any(v_unsure) then v_now + interval '2 seconds' end) as due,
      case
        when r.cancel_requested_at is not null then 'cancelled'
        when s.is_over then 'ready'
        when s.until is not null or r.job_id = any(v_unsure) then 'scheduled'
        else 'blocked'
      end as to_state
  ) as d
  where r.job_id = any(v_locked);
  perform trunkline_internal.move_running(p_moves => v_moves, p_now => v_now);
  return query select v.* from trunkline_internal.verdicts(p_jobs => p_jobs, p_attempts => p_attempts, p_moves => v_moves) as v;
end;
$$;
comment on function trunkline.suspend(text, uuid[], integer[]) is 'Puts running attempts back until what they wait for is there; returns one verdict per job.';
