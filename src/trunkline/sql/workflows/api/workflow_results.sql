-- Returns a page of the results of a step of a workflow, in index order, from index p_from on, for the caller's tenant.
-- Jobs that have not completed have no row. A page with fewer than p_limit rows is the last one.
create or replace function trunkline.workflow_results(
  p_workflow uuid,
  p_step text,
  p_from integer default 0,
  p_limit integer default 100
)
returns setof trunkline.dependency_result
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_place integer;
begin
  if p_limit is null or p_limit not between 1 and 1000 then
    perform trunkline_internal.refuse(
      p_name => 'limit_out_of_range', p_detail => jsonb_build_object('limit', p_limit, 'minimum', 1, 'maximum', 1000)
    );
  end if;
  perform trunkline_internal.visible_workflow(p_workflow => p_workflow);
  select s.place into v_place
  from trunkline_internal.workflow_steps as s
  where s.workflow_id = p_workflow and s.name = p_step;
  if not found then
    perform trunkline_internal.refuse(
      p_name => 'unknown_step', p_detail => jsonb_build_object('workflow', p_workflow, 'step', p_step)
    );
  end if;
  return query
  select r.* from trunkline_internal.step_results(
    p_workflow => p_workflow, p_place => v_place, p_from => greatest(p_from, 0), p_limit => p_limit
  ) as r;
end;
$$;
comment on function trunkline.workflow_results(uuid, text, integer, integer) is 'Returns a page of the results of a step of a workflow, in index order, from index p_from on, for the caller''s tenant.';
