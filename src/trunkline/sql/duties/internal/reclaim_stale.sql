-- Takes back running jobs whose lease or hard limit is over, or whose worker is gone; returns them with their new state.
-- running -> scheduled (after a jitter, or the back-off if the task has lost_backoff) | dead (out of attempts,
-- or it killed too many workers) | cancelled where that was asked for. Skips locked rows, bounded.
-- p_from is where the look by expiry starts: earlier ones were handled, see the duty reclaim.
create or replace function trunkline_internal.reclaim_stale(p_now timestamptz, p_from timestamptz, p_limit integer)
returns setof trunkline.reclaimed_job
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_crash_limit integer := trunkline_internal.setting(p_name => 'crash_limit')::integer;
  v_gone text[];
  v_jitter double precision :=
    extract(epoch from trunkline_internal.setting(p_name => 'reclaim_jitter')::interval)::double precision;
  v_lost uuid[];
  v_moves trunkline_internal.move[];
  v_now timestamptz;
begin
  v_gone := trunkline_internal.notice_gone_workers(p_now => p_now);
  v_lost := array(
    select r.job_id
    from trunkline_internal.running as r
    where r.lease_expires_at <= p_now and r.lease_expires_at >= p_from
    order by r.lease_expires_at
    limit p_limit
    for update of r skip locked
  );
  if v_gone is not null and cardinality(v_lost) < p_limit then
    v_lost := v_lost || array(
      select r.job_id
      from trunkline_internal.running as r
      where r.worker = any(v_gone)
        and r.job_id <> all(v_lost)
        and not exists (
          select from trunkline_internal.tasks as t where t.task = r.task and not t.reclaim_on_worker_death
        )
      order by r.job_id
      limit p_limit - cardinality(v_lost)
      for update of r skip locked
    );
  end if;
  if cardinality(v_lost) = 0 then
    return;
  end if;
  -- Read after the locks: the due time must come after this transaction's id, see promote_due.
  v_now := greatest(trunkline.clock(), p_now);
  select array_agg(
    row(
      r.job_id,
      d.to_state,
      case when d.to_state = 'scheduled' then v_now + w.delay else r.run_at end,
      r.failures + 1,
      r.crashes + c.crashed::integer,
      r.deferrals,
      false,
      case d.to_state
        when 'cancelled' then coalesce(r.cancel_reason, 'cancelled')
        when 'scheduled' then c.cause
        else case when r.failures + 1 >= r.max_attempts then 'attempts_exhausted' else 'worker_killer' end
      end,
      jsonb_build_object(
        'type', c.cause,
        'message', case c.cause
          when 'worker_gone' then 'the worker stopped sending its pulse'
          when 'hard_limit' then 'the attempt ran longer than its hard limit'
          else 'no heartbeat within the lease'
        end,
        'worker', r.worker, 'claimed_at', r.claimed_at, 'heartbeat_at', r.heartbeat_at,
        'lease_expires_at', r.lease_expires_at, 'lost_at', v_now
      ),
      'lost',
      jsonb_build_object('cause', c.cause, 'failures', r.failures + 1, 'jitter_seconds', extract(epoch from w.delay))
    )::trunkline_internal.move
    order by r.job_id
  )
  into v_moves
  from trunkline_internal.running as r
  left join trunkline_internal.tasks as t on t.task = r.task
  cross join lateral (
    select
      case
        when r.worker = any(v_gone) then 'worker_gone'
        when p_now >= r.hard_deadline then 'hard_limit'
        else 'lease_expired'
      end as cause,
      coalesce(r.worker = any(v_gone), false) or exists (
        select from trunkline_internal.workers as k where k.worker = r.worker and k.state = 'gone'
      ) as crashed
  ) as c
  cross join lateral (
    select case
      when r.cancel_requested_at is not null then 'cancelled'
      when r.failures + 1 >= r.max_attempts then 'dead'
      when r.crashes + c.crashed::integer >= coalesce(t.crash_limit, v_crash_limit) then 'dead'
      else 'scheduled'
    end as to_state
  ) as d
  cross join lateral (
    -- The job is named in the expression, so that the jitter is drawn for each and not once for all.
    select case
      when t.lost_backoff then trunkline_internal.backoff(
        p_failures => r.failures + 1, p_base => t.backoff_base, p_factor => t.backoff_factor,
        p_cap => t.backoff_cap, p_jitter => t.backoff_jitter
      )
      else make_interval(secs => least(floor(trunkline_internal.draw() * (v_jitter + 1) + 0 * r.attempt), v_jitter))
    end as delay
  ) as w
  where r.job_id = any(v_lost);
  return query
  select r.job_id, r.task, r.attempt, r.worker, m.reason, m.to_state, m.failures::integer, m.run_at
  from trunkline_internal.running as r
  join unnest(v_moves) as m on m.job_id = r.job_id
  -- Said twice, because by the join alone all that runs was read.
  where r.job_id = any(v_lost);
  perform trunkline_internal.move_running(p_moves => v_moves, p_now => v_now);
end;
$$;
comment on function trunkline_internal.reclaim_stale(timestamptz, timestamptz, integer) is 'Takes back running jobs whose lease or hard limit is over, or whose worker is gone; returns them with their new state.';
