-- Opens the closed breakers of these buckets that have counted too many failed attempts; returns how many.
-- The caller has locked their counting (lock_breakers). Otherwise two transactions that cannot see each other's failure
-- would both leave the breaker closed.
create or replace function trunkline_internal.open_breakers(p_buckets bigint[], p_limits integer[], p_now timestamptz)
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
  v_opened integer;
begin
  insert into trunkline_internal.breakers as b (
    bucket, limit_id, state, opened_at, probe_at, failures, changed_at, changed_by, reason
  )
  select
    g.bucket, g.limit_id, 'open', p_now, p_now + m.breaker_probe_after, a.failures, p_now, session_user,
    format('%s of %s attempts failed within %s', a.failures, a.attempts, m.breaker_window)
  from unnest(p_buckets, p_limits) as g (bucket, limit_id)
  join trunkline_internal.limits as m on m.limit_id = g.limit_id and m.breaker_failures is not null
  left join trunkline_internal.breakers as c on c.bucket = g.bucket
  cross join lateral trunkline_internal.breaker_counts(
    p_bucket => g.bucket, p_window => m.breaker_window, p_closed_at => c.closed_at, p_now => p_now
  ) as a
  where coalesce(c.state, 'closed') = 'closed'
    and a.failures >= m.breaker_failures
    and a.failures >= m.breaker_share * a.attempts
  order by g.bucket
  on conflict (bucket) do update
  set
    limit_id = excluded.limit_id,
    state = excluded.state,
    opened_at = excluded.opened_at,
    probe_at = excluded.probe_at,
    probe_job = null,
    failures = excluded.failures,
    changed_at = excluded.changed_at,
    changed_by = excluded.changed_by,
    reason = excluded.reason
  where b.state = 'closed';
  get diagnostics v_opened = row_count;
  return v_opened;
end;
$$;
comment on function trunkline_internal.open_breakers(bigint[], integer[], timestamptz) is 'Opens the closed breakers of these buckets that have counted too many failed attempts; returns how many.';
