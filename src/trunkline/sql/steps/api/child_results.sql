-- Returns a page of the results of jobs that a running attempt's job has waited for, in index order, from index p_from on.
-- Only the worker of the current attempt may read them. A page with fewer than p_limit rows is the last one.
create or replace function trunkline.child_results(
  p_worker text,
  p_job uuid,
  p_attempt integer,
  p_workflow uuid,
  p_step text,
  p_from integer default 0,
  p_limit integer default 100
)
returns setof trunkline.dependency_result
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_limit is null or p_limit not between 1 and 1000 then
    perform trunkline_internal.refuse(
      p_name => 'limit_out_of_range', p_detail => jsonb_build_object('limit', p_limit, 'minimum', 1, 'maximum', 1000)
    );
  end if;
  perform trunkline_internal.hold_attempt(p_worker => p_worker, p_job => p_job, p_attempt => p_attempt);
  return query
  select r.*
  from trunkline_internal.workflows as w
  join trunkline_internal.workflow_steps as s on s.workflow_id = w.workflow_id and s.name = p_step
  cross join lateral trunkline_internal.step_results(
    p_workflow => w.workflow_id, p_place => s.place, p_from => greatest(p_from, 0), p_limit => p_limit
  ) as r
  where w.workflow_id = p_workflow and w.parent_job = p_job;
end;
$$;
comment on function trunkline.child_results(text, uuid, integer, uuid, text, integer, integer) is 'Returns a page of the results of jobs that a running attempt''s job has waited for, in index order, from index p_from on.';
