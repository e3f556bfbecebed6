-- Steps that run once for all jobs of a workflow: which attempt runs each, and its result once it is recorded.
create or replace view trunkline.once_steps with (security_barrier = true) as
select o.scope as workflow_id, o.name, o.holder as job_id, o.attempt, o.started_at, o.recorded_at, o.result
from trunkline_internal.once_steps as o
join trunkline_internal.workflows as w on w.workflow_id = o.scope
where (select trunkline.tenant_scope() is null) or w.tenant = (select trunkline.tenant_scope());
comment on view trunkline.once_steps is 'Steps that run once for all jobs of a workflow: which attempt runs each, and its result once it is recorded.';
