-- Reclaim: takes back jobs without a sign of life for longer than their TTL, at most 500 per call.
-- requires: record
-- source: 000100

create or replace function executor.reclaim_stale_jobs()
returns table (id uuid, type text, old_worker text, new_status text, attempts integer)
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
  select
    r.job_id, r.task, r.worker, executor.executor_status(p_state => r.state),
    case when r.state = 'dead' then r.failures else r.failures + 1 end
  from trunkline.reclaim() as r
  join trunkline.tasks as t on t.task = r.task
  where t.profile = 'executor'
$$;
comment on function executor.reclaim_stale_jobs() is 'Takes back jobs whose TTL or hard limit is over: queued again with a back-off, or dead at the limit of attempts; waits for no lock.';

revoke all on function executor.reclaim_stale_jobs() from public;
-- Workers also run the schedules, so the scheduler's role is a member of trunkline_worker.
grant execute on function executor.reclaim_stale_jobs() to trunkline_worker, trunkline_operator;
