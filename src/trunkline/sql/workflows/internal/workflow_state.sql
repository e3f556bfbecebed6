-- Returns the state of a workflow as users see it: a live one is queued until a first attempt has started, then running.
create or replace function trunkline_internal.workflow_state(p_workflow uuid, p_state text)
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  return case
    when p_state <> 'live' then p_state
    when exists (select from trunkline_internal.running as r where r.workflow_id = p_workflow)
      or exists (select from trunkline_internal.workflow_ends as e where e.workflow_id = p_workflow)
      or exists (select from trunkline_internal.waiting as w where w.workflow_id = p_workflow and w.attempt > 0)
      then 'running'
    else 'queued'
  end;
end;
$$;
comment on function trunkline_internal.workflow_state(uuid, text) is 'Returns the state of a workflow as users see it: a live one is queued until a first attempt has started, then running.';
