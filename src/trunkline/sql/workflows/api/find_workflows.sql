-- Returns the ids of a page of workflows, newest first, by name, state and tenant.
-- Through the view, PostgreSQL reads and sorts all workflows for each page: it does not pass a limit into a view with a
-- security barrier. This reads backwards from p_before until the page is full, so only a filter that few workflows match
-- takes longer with more of them; queued and running ones are found in the index of live workflows.
-- Null means any. Read-only, in one snapshot.
create or replace function trunkline.find_workflows(
  p_names text[] default null,
  p_states text[] default null,
  p_tenant text default null,
  p_limit integer default 100,
  p_before uuid default null
)
returns uuid[]
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_sort = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  c_live constant text[] := array['queued', 'running'];
  c_states constant text[] := array['queued', 'running', 'completed', 'failed', 'cancelled'];
  v_before uuid := coalesce(p_before, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
  v_scope text := trunkline.tenant_scope();
  v_states text[] := coalesce(p_states, c_states);
begin
  if p_limit is null or p_limit not between 1 and 10000 then
    perform trunkline_internal.refuse(
      p_name => 'limit_out_of_range', p_detail => jsonb_build_object('limit', p_limit, 'minimum', 1, 'maximum', 10000)
    );
  end if;
  if cardinality(v_states) > 100 or not v_states <@ c_states then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument', p_detail => jsonb_build_object('argument', 'p_states', 'must_be', c_states)
    );
  end if;
  if not trunkline_internal.is_name_list(p_names => p_names) then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument', p_detail => jsonb_build_object('argument', 'p_names', 'must_be', 'at most 10000 names')
    );
  end if;
  if v_states <@ c_live then
    return array(
      select w.workflow_id
      from trunkline_internal.workflows as w
      where w.ended_at is null
        and w.workflow_id < v_before
        and (v_scope is null or w.tenant = v_scope)
        and (p_tenant is null or w.tenant = p_tenant)
        and (p_names is null or w.name = any(p_names))
        and trunkline_internal.workflow_state(p_workflow => w.workflow_id, p_state => w.state) = any(v_states)
      order by w.workflow_id desc
      limit p_limit
    );
  end if;
  return array(
    select w.workflow_id
    from trunkline_internal.workflows as w
    where w.workflow_id < v_before
      and (v_scope is null or w.tenant = v_scope)
      and (p_tenant is null or w.tenant = p_tenant)
      and (p_names is null or w.name = any(p_names))
      and trunkline_internal.workflow_state(p_workflow => w.workflow_id, p_state => w.state) = any(v_states)
    order by w.workflow_id desc
    limit p_limit
  );
end;
$$;
comment on function trunkline.find_workflows(text[], text[], text, integer, uuid) is 'Returns the ids of a page of workflows, newest first, by name, state and tenant.';
