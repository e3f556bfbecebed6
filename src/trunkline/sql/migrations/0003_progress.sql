-- why: the estimated time left of a workflow comes from earlier ones of its name
-- breaking: no

-- Also finds the workflows of a name for lists.
-- squawk-ignore require-concurrent-index-creation
create index workflows_by_name on trunkline_internal.workflows (name, workflow_id);
