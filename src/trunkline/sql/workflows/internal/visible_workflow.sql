-- Returns a workflow that the caller's tenant may see, or refuses it as unknown; with p_lock it is locked exclusively and read after that.
create or replace function trunkline_internal.visible_workflow(p_workflow uuid, p_lock boolean default false)
returns trunkline_internal.workflows
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_scope text := trunkline.tenant_scope();
  v_workflow trunkline_internal.workflows;
begin
  for v_round in 1..2 loop
    select w.* into v_workflow
    from trunkline_internal.workflows as w
    where w.workflow_id = p_workflow and (v_scope is null or w.tenant = v_scope);
    if not found then
      perform trunkline_internal.refuse(p_name => 'unknown_workflow', p_detail => jsonb_build_object('workflow', p_workflow));
    end if;
    exit when not p_lock or v_round = 2;
    -- Only after the first look: a session that may not see the workflow must not wait for it.
    perform trunkline_internal.lock_workflow(p_workflow => p_workflow);
  end loop;
  return v_workflow;
end;
$$;
comment on function trunkline_internal.visible_workflow(uuid, boolean) is 'Returns a workflow that the caller''s tenant may see, or refuses it as unknown; with p_lock it is locked exclusively and read after that.';
