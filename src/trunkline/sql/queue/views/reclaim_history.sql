-- Reclaimed attempts, newest first: which job was taken from which worker, why, and its next state.
-- Tests the tenant scope as the view jobs does.
create or replace view trunkline.reclaim_history with (security_barrier = true) as
select
  e.at, e.job_id, e.attempt, e.task, e.queue, e.tenant, e.worker, e.to_state,
  e.detail ->> 'reason' as reason,
  e.detail -> 'error' as error,
  (e.detail ->> 'run_at')::timestamptz as run_at
from trunkline_internal.events as e
where e.kind = 'lost'
  and ((select trunkline.tenant_scope() is null) or e.tenant = (select trunkline.tenant_scope()))
order by e.at desc;
comment on view trunkline.reclaim_history is 'Reclaimed attempts, newest first: which job was taken from which worker, why, and its next state.';
