-- Defers running attempts without counting a failure (no capacity, 429, not ready yet); returns one verdict per job.
-- running -> scheduled. The default delay is 60 s, doubling to 15 minutes. With p_jitter, up to half the delay and at most
-- 30 s is added per job.
create or replace function trunkline.snooze(
  p_worker text,
  p_jobs uuid[],
  p_attempts integer[],
  p_delays interval[] default null,
  p_reason text default null,
  p_jitter boolean default true
)
returns setof trunkline.verdict
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform trunkline_internal.check_batch(
    p_worker => p_worker, p_jobs => p_jobs, p_attempts => p_attempts, p_others => array[cardinality(p_delays)]
  );
  perform trunkline_internal.check_delays(p_delays => p_delays);
  return query
  select v.*
  from trunkline_internal.defer_attempts(
    p_worker => p_worker, p_jobs => p_jobs, p_attempts => p_attempts, p_delays => p_delays,
    p_reason => p_reason, p_jitter => coalesce(p_jitter, true), p_immediate => false, p_kind => 'snoozed', p_counts => true
  ) as v;
end;
$$;
comment on function trunkline.snooze(text, uuid[], integer[], interval[], text, boolean) is 'Defers running attempts without counting a failure (no capacity, 429, not ready yet); returns one verdict per job.';
