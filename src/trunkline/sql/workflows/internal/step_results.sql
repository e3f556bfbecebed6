-- Returns the results of the completed jobs of a step from index p_from on, in index order, at most p_limit.
-- A step that was taken over from another workflow has its results there. Each result is read by its id and the time of its
-- end, so only one partition is opened for it. Of a result in the store, the file is returned too.
create or replace function trunkline_internal.step_results(p_workflow uuid, p_place integer, p_from integer, p_limit integer)
returns setof trunkline.dependency_result
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_place integer;
  v_workflow uuid;
begin
  select o.workflow_id, o.place
  into v_workflow, v_place
  from trunkline_internal.workflow_steps as s
  join trunkline_internal.workflow_steps as o
    on o.workflow_id = coalesce(s.result_of, s.workflow_id) and o.name = s.name
  where s.workflow_id = p_workflow and s.place = p_place;
  return query
  select e.item, e.job_id, coalesce(e.result, f.result, b.body), a.path, a.sha256, a.bytes
  from trunkline_internal.workflow_ends as e
  left join lateral (
    select f.result, f.result_day
    from trunkline_internal.finished as f
    where f.job_id = e.job_id and f.finished_at = e.finished_at
    limit 1
  ) as f on true
  left join lateral (
    select b.body from trunkline_internal.bodies as b where b.job_id = e.job_id and b.kind = 'result' and b.day = f.result_day
  ) as b on true
  left join trunkline_internal.artifacts as a
    on a.artifact_id = trunkline_internal.result_reference(p_result => coalesce(e.result, f.result))
      and a.job_id = e.job_id
      and a.kind = 'result'
  where e.workflow_id = v_workflow and e.step = v_place and e.item >= p_from and e.state = 'completed'
  order by e.item
  limit p_limit;
end;
$$;
comment on function trunkline_internal.step_results(uuid, integer, integer, integer) is 'Returns the results of the completed jobs of a step from index p_from on, in index order, at most p_limit.';
