-- Ends running attempts as failed: scheduled again with back-off, or dead if not retryable or out of attempts; returns one verdict per job.
-- running -> scheduled | dead, or cancelled if requested. Locks its rows in id order and reads the clock afterwards, which
-- the position of promotion relies on.
-- p_retryable null means true; p_delays overrides the task's back-off per job.
create or replace function trunkline.fail(
  p_worker text,
  p_jobs uuid[],
  p_attempts integer[],
  p_errors jsonb[] default null,
  p_retryable boolean[] default null,
  p_delays interval[] default null
)
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
  v_scope text := trunkline.tenant_scope();
begin
  perform trunkline_internal.check_batch(
    p_worker => p_worker, p_jobs => p_jobs, p_attempts => p_attempts,
    p_others => array[cardinality(p_errors), cardinality(p_retryable), cardinality(p_delays)]
  );
  perform trunkline_internal.check_delays(p_delays => p_delays);
  if pg_column_size(p_errors) > 67108864 then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_errors', 'must_be', 'at most 64 MB', 'bytes', pg_column_size(p_errors))
    );
  end if;
  v_locked := trunkline_internal.lock_running(
    p_worker => p_worker, p_jobs => p_jobs, p_attempts => p_attempts, p_scope => v_scope
  );
  v_now := trunkline.clock();
  select array_agg(
    row(
      r.job_id,
      d.to_state,
      -- A task without a policy, which only a manual change of the tables can cause, uses the default delay.
      case when d.to_state = 'scheduled' then v_now + coalesce(a.delay, trunkline_internal.backoff(
        p_failures => r.failures + 1, p_base => t.backoff_base, p_factor => t.backoff_factor,
        p_cap => t.backoff_cap, p_jitter => t.backoff_jitter
      ), interval '10 seconds') else r.run_at end,
      r.failures + 1,
      r.crashes,
      0,
      false,
      case d.to_state
        when 'cancelled' then coalesce(r.cancel_reason, 'cancelled')
        when 'scheduled' then 'retry'
        else case when a.retryable is false then 'not_retryable' else 'attempts_exhausted' end
      end,
      trunkline_internal.bounded_error(p_error => a.error, p_bytes => 8192),
      case when d.to_state = 'cancelled' then 'cancelled' else 'failed' end,
      jsonb_build_object('retryable', coalesce(a.retryable, true), 'failures', r.failures + 1)
    )::trunkline_internal.move
  )
  into v_moves
  from (
    select distinct on (a.job_id) a.*
    from unnest(p_jobs, p_attempts, p_errors, p_retryable, p_delays) as a (job_id, attempt, error, retryable, delay)
    order by a.job_id, a.attempt desc
  ) as a
  join trunkline_internal.running as r on r.job_id = a.job_id
  left join trunkline_internal.tasks as t on t.task = r.task
  cross join lateral (
    select case
      when r.cancel_requested_at is not null then 'cancelled'
      when a.retryable is false or r.failures + 1 >= r.max_attempts then 'dead'
      else 'scheduled'
    end as to_state
  ) as d
  where r.job_id = any(v_locked);
  perform trunkline_internal.move_running(p_moves => v_moves, p_now => v_now);
  return query select v.* from trunkline_internal.verdicts(p_jobs => p_jobs, p_attempts => p_attempts, p_moves => v_moves) as v;
end;
$$;
comment on function trunkline.fail(text, uuid[], integer[], jsonb[], boolean[], interval[]) is 'Ends running attempts as failed: scheduled again with back-off, or dead if not retryable or out of attempts; returns one verdict per job.';
