-- Records that a live workflow is to stop, with what stopped it and the first reason, and does what can be done now. The caller holds its lock.
-- p_kind is cancel, deadline or parent; what follows depends on it, never on the text of the reason.
create or replace function trunkline_internal.request_stop(p_workflow uuid, p_kind text, p_reason text, p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  update trunkline_internal.workflows as w
  set cancel_requested_at = p_now, stop_kind = p_kind, reason = p_reason
  where w.workflow_id = p_workflow and w.cancel_requested_at is null;
  perform trunkline_internal.advance_workflow(p_workflow => p_workflow, p_now => p_now);
end;
$$;
comment on function trunkline_internal.request_stop(uuid, text, text, timestamptz) is 'Records that a live workflow is to stop, with what stopped it and the first reason, and does what can be done now. The caller holds its lock.';
