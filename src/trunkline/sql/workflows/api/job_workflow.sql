-- Returns the workflow of a running job and the job's place in it, with the number of jobs of each step that its step depends on.
-- Only the worker of the current attempt may read it. Null for a plain job.
create or replace function trunkline.job_workflow(p_worker text, p_job uuid, p_attempt integer)
returns jsonb
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_job record;
  v_scope text := trunkline.tenant_scope();
begin
  select r.workflow_id, r.workflow_step, r.workflow_item into v_job
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
  return (
    select jsonb_build_object(
      'id', w.workflow_id, 'name', w.name, 'generation', w.generation, 'params', w.params, 'step', s.name,
      'item', v_job.workflow_item,
      'sets', (
        select coalesce(jsonb_object_agg(d.name, d.items), '{}')
        from trunkline_internal.workflow_steps as d
        where d.workflow_id = s.workflow_id and d.place = any(s.after)
      )
    )
    from trunkline_internal.workflows as w
    join trunkline_internal.workflow_steps as s on s.workflow_id = w.workflow_id and s.place = v_job.workflow_step
    where w.workflow_id = v_job.workflow_id
  );
end;
$$;
comment on function trunkline.job_workflow(text, uuid, integer) is 'Returns the workflow of a running job and the job''s place in it, with the number of jobs of each step that its step depends on.';
