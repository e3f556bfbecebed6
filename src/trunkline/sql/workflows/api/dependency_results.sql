-- Returns a page of the results of a step that a running job's step depends on, in index order, from index p_from on.
-- Only the worker of the current attempt may read, and only steps that the job's own step waits for. A page with fewer than
-- p_limit rows is the last one.
create or replace function trunkline.dependency_results(
  p_worker text,
  p_job uuid,
  p_attempt integer,
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
  v_job record;
  v_place integer;
  v_scope text := trunkline.tenant_scope();
begin
  if p_limit is null or p_limit not between 1 and 1000 then
    perform trunkline_internal.refuse(
      p_name => 'limit_out_of_range', p_detail => jsonb_build_object('limit', p_limit, 'minimum', 1, 'maximum', 1000)
    );
  end if;
  select r.workflow_id, r.workflow_step into v_job
  from trunkline_internal.running as r
  where r.job_id = p_job and r.attempt = p_attempt and r.worker = p_worker and (v_scope is null or r.tenant = v_scope);
  if not found then
    perform trunkline_internal.refuse(
      p_name => 'stale_attempt',
      p_detail => jsonb_build_object(
        'worker', p_worker, 'attempts', jsonb_build_array(jsonb_build_object('job', p_job, 'attempt', p_attempt))
      )
    );
  end if;
  select d.place into v_place
  from trunkline_internal.workflow_steps as s
  join trunkline_internal.workflow_steps as d on d.workflow_id = s.workflow_id and d.place = any(s.after) and d.name = p_step
  where s.workflow_id = v_job.workflow_id and s.place = v_job.workflow_step;
  if not found then
    perform trunkline_internal.refuse(
      p_name => 'unknown_step',
      p_detail => jsonb_build_object('workflow', v_job.workflow_id, 'job', p_job, 'step', p_step)
    );
  end if;
  return query
  select r.* from trunkline_internal.step_results(
    p_workflow => v_job.workflow_id, p_place => v_place, p_from => greatest(p_from, 0), p_limit => p_limit
  ) as r;
end;
$$;
comment on function trunkline.dependency_results(text, uuid, integer, text, integer, integer) is 'Returns a page of the results of a step that a running job''s step depends on, in index order, from index p_from on.';
