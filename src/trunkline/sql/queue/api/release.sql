-- Gives running attempts of a worker back at once without counting a failure (not started, shutdown, deadlock); answers per job.
-- running -> ready, before the other jobs of its priority; after five times in a row -> scheduled as a
-- deferred job, so that one that deadlocks for ever does not spin. With p_unstarted that does not
-- count: a job nobody began was not put off, however often workers come and go; and what its claim has
-- charged at limits is taken back.
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
comment on function trunkline.release(text, uuid[], integer[], text, boolean) is 'Gives running attempts of a worker back at once without counting a failure (not started, shutdown, deadlock); answers per job.';
