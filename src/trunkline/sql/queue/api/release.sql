-- Hands running attempts back at once without counting a failure (not started, shutdown, deadlock); returns one verdict per job.
-- running -> ready, ahead of the other jobs of its priority. After five releases in a row -> scheduled as a deferred job,
-- so that a job that always deadlocks does not spin. With p_unstarted the release does not count as a deferral, however
-- often workers come and go, because the job never started; the charges of its claim are refunded.
create or replace function trunkline.release(
  p_worker text,
  p_jobs uuid[],
  p_attempts integer[],
  p_reason text default null,
  p_unstarted boolean default false
)
returns setof trunkline.verdict
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform trunkline_internal.check_batch(
    p_worker => p_worker, p_jobs => p_jobs, p_attempts => p_attempts, p_others => '{}'
  );
  if p_unstarted then
    perform trunkline_internal.refund_unstarted(p_worker => p_worker, p_jobs => p_jobs, p_attempts => p_attempts);
  end if;
  return query
  select v.*
  from trunkline_internal.defer_attempts(
    p_worker => p_worker, p_jobs => p_jobs, p_attempts => p_attempts, p_delays => null,
    p_reason => p_reason, p_jitter => true, p_immediate => true, p_kind => 'released',
    p_counts => p_unstarted is not true
  ) as v;
end;
$$;
comment on function trunkline.release(text, uuid[], integer[], text, boolean) is 'Hands running attempts back at once without counting a failure (not started, shutdown, deadlock); returns one verdict per job.';
