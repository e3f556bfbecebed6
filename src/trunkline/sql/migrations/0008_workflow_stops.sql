-- why: how a workflow was stopped is stored apart from the free text of its reason; a callback for every end; an index of live children
-- breaking: no

-- How workflows were stopped before is derived from their reasons.
alter table trunkline_internal.workflows
  add column on_end jsonb,
  add column stop_kind text constraint workflows_stop_kind check (stop_kind in ('cancel', 'deadline', 'parent'));
comment on column trunkline_internal.workflows.stop_kind is 'What stopped it: a cancel request, its deadline, or the end of its parent. Null while nothing has.';
comment on column trunkline_internal.workflows.on_end is 'The callback for every end. The other callbacks are for one state.';
update trunkline_internal.workflows
set stop_kind = case
  when reason = 'deadline' and deadline <= cancel_requested_at then 'deadline'
  when reason = 'parent ended' and parent_job is not null then 'parent'
  else 'cancel'
end
where cancel_requested_at is not null;

-- The duty advance_workflows reads live children in turn. No query used the index by parent.
-- squawk-ignore require-concurrent-index-creation
create index workflows_children on trunkline_internal.workflows (workflow_id) include (parent_job)
  where ended_at is null and parent_job is not null and not detached and cancel_requested_at is null;
-- squawk-ignore require-concurrent-index-deletion
drop index trunkline_internal.workflows_parent;

-- A function within the engine, which no client calls. It takes another argument now.
-- squawk-ignore ban-drop-function
drop function if exists trunkline_internal.request_stop(uuid, text, timestamptz);

-- A cancelled job of a workflow that may still run it moves to a younger partition.
insert into trunkline_internal.job_transitions (from_state, to_state, by_function) values
  ('cancelled', 'cancelled', 'maintain_partitions');
