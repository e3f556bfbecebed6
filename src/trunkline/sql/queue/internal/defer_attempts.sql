-- Puts running attempts back without counting a failure, for snooze, release and hand_over; bounded by count and age.
-- running -> ready (p_immediate: to the front of its priority) | scheduled | dead (beyond the bounds, if the task has
-- dead_when_deferred) | cancelled if requested. Locks its rows in id order.
create or replace function trunkline_internal.defer_attempts(
  p_worker text,
  p_jobs uuid[],
  p_attempts integer[],
  p_delays interval[],
  p_reason text,
  p_jitter boolean,
  p_immediate boolean,
  p_kind text,
  p_counts boolean
)
returns setof trunkline.verdict
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_immediate integer := trunkline_internal.setting(p_name => 'max_immediate_releases')::integer;
  v_locked uuid[];
  v_max_age interval := trunkline_internal.setting(p_name => 'max_deferral_age')::interval;
  v_max_count integer := trunkline_internal.setting(p_name => 'max_deferrals')::integer;
  v_moves trunkline_internal.move[];
  v_now timestamptz;
begin
  v_locked := trunkline_internal.lock_running(
    p_worker => p_worker, p_jobs => p_jobs, p_attempts => p_attempts, p_scope => trunkline.tenant_scope()
  );
  v_now := trunkline.clock();
  select array_agg(
    row(
      r.job_id,
      d.to_state,
      case d.to_state
        when 'ready' then v_now
        when 'scheduled' then v_now + w.delay + make_interval(secs => w.jitter)
        else r.run_at
      end,
      r.failures,
      r.crashes,
      r.deferrals + c.counted,
      p_immediate,
      case d.to_state
        when 'cancelled' then coalesce(r.cancel_reason, 'cancelled')
        when 'dead' then 'deferred_too_long'
        else coalesce(left(p_reason, 500), p_kind)
      end,
      null,
      case when d.to_state = 'cancelled' then 'cancelled' else p_kind end,
      jsonb_build_object(
        'delay_seconds', case when d.to_state = 'scheduled' then extract(epoch from w.delay) end,
        'jitter_seconds', case when d.to_state = 'scheduled' then w.jitter end,
        'deferrals', r.deferrals + c.counted, 'over_bounds', b.over_bounds
      )
    )::trunkline_internal.move
  )
  into v_moves
  from (
    select distinct on (a.job_id) a.*
    from unnest(p_jobs, p_attempts, p_delays) as a (job_id, attempt, delay)
    order by a.job_id, a.attempt desc
  ) as a
  join trunkline_internal.running as r on r.job_id = a.job_id
  left join trunkline_internal.tasks as t on t.task = r.task
  cross join (select case when p_counts then 1 else 0 end as counted) as c
  cross join lateral (
    select p_counts and (
      r.deferrals + 1 > v_max_count or coalesce(v_now - r.deferred_since > v_max_age, false)
    ) as over_bounds
  ) as b
  cross join lateral (
    select case
      when r.cancel_requested_at is not null then 'cancelled'
      when b.over_bounds and t.dead_when_deferred then 'dead'
      when p_immediate and (r.deferrals < v_immediate or not p_counts) then 'ready'
      else 'scheduled'
    end as to_state
  ) as d
  cross join lateral (
    select coalesce(a.delay, trunkline_internal.deferral_delay(p_deferrals => r.deferrals)) as delay
  ) as x
  cross join lateral (
    -- Whole seconds, at most half the delay and at most 30, so that jobs deferred together are not due together. The
    -- expression refers to the row, so that PostgreSQL evaluates it for each job.
    select
      x.delay,
      case when p_jitter then floor(
        trunkline_internal.draw() * (floor(least(extract(epoch from x.delay) * 0.5, 30)) + 1) + 0 * r.attempt
      ) else 0 end as jitter
  ) as w
  where r.job_id = any(v_locked);
  perform trunkline_internal.move_running(p_moves => v_moves, p_now => v_now);
  return query select v.* from trunkline_internal.verdicts(p_jobs => p_jobs, p_attempts => p_attempts, p_moves => v_moves) as v;
end;
$$;
comment on function trunkline_internal.defer_attempts(text, uuid[], integer[], interval[], text, boolean, boolean, text, boolean) is 'Puts running attempts back without counting a failure, for snooze, release and hand_over; bounded by count and age.';
