-- Returns the failed attempts that the breaker of a bucket counts now, and all attempts that it compares them with.
-- Failures before it last closed do not count. Attempts are kept by the minute of their start, from the last probe on, and
-- are never fewer than the failed ones, some of which started earlier.
create or replace function trunkline_internal.breaker_counts(
  p_bucket bigint,
  p_window interval,
  p_closed_at timestamptz,
  p_now timestamptz,
  out failures bigint,
  out attempts bigint
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  select count(*)
  into failures
  from trunkline_internal.breaker_failures as f
  where f.bucket = p_bucket and f.at > greatest(p_now - p_window, p_closed_at);
  select greatest(sum(c.started)::bigint, failures)
  into attempts
  from (
    select s.started_at, s.started from trunkline_internal.bucket_states as s where s.bucket = p_bucket order by s.revision desc limit 1
  ) as s
  cross join lateral unnest(s.started_at, s.started) as c (minute, started)
  where c.minute >= floor(extract(epoch from p_now - p_window) / 60);
end;
$$;
comment on function trunkline_internal.breaker_counts(bigint, interval, timestamptz, timestamptz) is 'Returns the failed attempts that the breaker of a bucket counts now, and all attempts that it compares them with.';
