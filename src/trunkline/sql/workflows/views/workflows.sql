-- Workflows of the caller's tenant, or of all tenants for our roles, with how many of their jobs have ended and how.
-- queued: no attempt has started yet. The counts are read only if they are selected.
create or replace view trunkline.workflows with (security_barrier = true) as
select
  w.workflow_id, w.name, w.kind,
  case
    when w.state <> 'live' then w.state
    when exists (select from trunkline_internal.running as r where r.workflow_id = w.workflow_id)
      or exists (select from trunkline_internal.workflow_ends as e where e.workflow_id = w.workflow_id)
      or exists (select from trunkline_internal.waiting as j where j.workflow_id = w.workflow_id and j.attempt > 0)
      then 'running'
    else 'queued'
  end as state,
  w.tenant, w.generation, w.jobs,
  (
    select count(*)::integer from trunkline_internal.workflow_ends as e where e.workflow_id = w.workflow_id and e.state = 'completed'
  ) as completed,
  (select count(*)::integer from trunkline_internal.workflow_ends as e where e.workflow_id = w.workflow_id and e.state = 'dead') as dead,
  (
    select count(*)::integer from trunkline_internal.workflow_ends as e where e.workflow_id = w.workflow_id and e.state = 'cancelled'
  ) as cancelled,
  w.created_at, w.ended_at, w.deadline, w.cancel_requested_at, w.reason, w.unique_key, w.correlation_id, w.tags, w.priority, w.params,
  w.parent_job, w.rerun_of, w.callback_error
from trunkline_internal.workflows as w
where (select trunkline.tenant_scope() is null) or w.tenant = (select trunkline.tenant_scope());
comment on view trunkline.workflows is 'Workflows of the caller''s tenant, or of all tenants for our roles, with how many of their jobs have ended and how.';
