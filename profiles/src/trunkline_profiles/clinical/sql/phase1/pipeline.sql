-- The pipeline of a file: one workflow of the engine, whose steps are the stages that the registry has for it.
-- requires: enqueue, files, job_types
-- source: added (workflow of an upload)

create or replace function clinical.pipeline_graph(
  p_file uuid,
  p_first text,
  p_payload jsonb,
  p_tags text[],
  p_priority integer,
  p_options jsonb default null
)
returns jsonb
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_taken_over constant text := 'taken over';
  v_after text;
  v_payload jsonb := p_payload || jsonb_build_object('shell_file_id', p_file);
  v_step jsonb;
  v_steps jsonb := '[]'::jsonb;
  v_tokens bigint;
  v_type clinical.job_types;
begin
  if p_options is not null then
    -- A job of the older system has been accepted: it follows a set without jobs, because a closed queue or a full lane
    -- refuses only jobs that start the workflow.
    v_steps := jsonb_build_array(jsonb_build_object('name', c_taken_over, 'task', p_first, 'items', '[]'::jsonb));
    v_after := c_taken_over;
  end if;
  for v_type in
    select t.*
    from clinical.stages(p_first => p_first) as s
    join clinical.job_types as t on t.job_type = s.job_type
    order by s.place
  loop
    v_tokens := clinical.checked_estimate(
      p_payload => v_payload, p_provider => v_type.provider_name, p_endpoint => v_type.api_endpoint
    );
    if not v_payload ? 'estimated_tokens' then
      -- An endpoint that allows less than the usual estimate does not turn uploads away.
      v_tokens := coalesce(
        (
          select least(v_tokens, nullif(l.tokens_per_minute, 0), nullif(l.tokens_per_hour, 0))
          from trunkline.limits as l
          where l.name = v_type.provider_name || '/' || v_type.api_endpoint
        ),
        v_tokens
      );
    end if;
    v_step := jsonb_build_object(
      'name', v_type.job_type, 'task', v_type.job_type, 'tags', p_tags,
      'payload', clinical.job_payload(p_payload => v_payload, p_type => v_type, p_tokens => v_tokens)
    );
    if v_type.api_endpoint is not null then
      v_step := v_step || jsonb_build_object('cost', jsonb_build_object('tokens', v_tokens));
    end if;
    if v_after is not null then
      v_step := v_step || jsonb_build_object('after', jsonb_build_array(v_after));
    end if;
    if v_type.job_type = p_first then
      v_step := v_step || coalesce(p_options, '{}');
      -- The estimate is that of the first stage alone.
      v_payload := v_payload - 'estimated_tokens';
    end if;
    v_steps := v_steps || jsonb_build_array(v_step);
    v_after := v_type.job_type;
  end loop;
  return jsonb_build_object(
    'name', 'clinical_upload', 'tenant', (select f.patient_id from clinical.shell_files as f where f.id = p_file),
    'correlation_id', p_file, 'priority', p_priority, 'steps', v_steps
  );
end;
$$;
comment on function clinical.pipeline_graph(uuid, text, jsonb, text[], integer, jsonb) is 'Returns the graph of a file''s pipeline from this stage on, each stage after the one before; p_options are options of the first one''s job, for a pipeline that is taken over.';

create or replace function clinical.start_pipeline(
  p_file uuid,
  p_first text,
  p_payload jsonb,
  p_tags text[],
  p_priority integer default 5,
  p_options jsonb default null
)
returns uuid
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_job uuid;
  v_workflow uuid;
begin
  v_workflow := (trunkline.start_workflow(p_graph => clinical.pipeline_graph(
    p_file => p_file, p_first => p_first, p_payload => p_payload, p_tags => p_tags, p_priority => p_priority, p_options => p_options
  ))).workflow_id;
  select j.job_id into v_job from trunkline.workflow_jobs(p_workflow => v_workflow, p_step => p_first) as j;
  update clinical.shell_files as f
  set job_id = v_job, workflow_id = v_workflow, updated_at = trunkline.clock()
  where f.id = p_file;
  return v_job;
end;
$$;
comment on function clinical.start_pipeline(uuid, text, jsonb, text[], integer, jsonb) is 'Starts the pipeline of a file from this stage on, with all its jobs, and links it to the file; returns the first job. The caller writes the audit event.';

create or replace function clinical.end_stage(p_job uuid)
returns uuid
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_job record;
  v_next text;
begin
  select j.workflow_id, j.workflow_step into v_job from trunkline.job(p_job => p_job) as j;
  if v_job.workflow_id is null then
    return null;
  end if;
  select s.name into v_next
  from trunkline.workflow_steps as s
  where s.workflow_id = v_job.workflow_id and s.place = v_job.workflow_step + 1;
  if found then
    return (select j.job_id from trunkline.workflow_jobs(p_workflow => v_job.workflow_id, p_step => v_next, p_limit => 1) as j);
  end if;
  perform clinical.set_file_state(p_file => clinical.file_of(p_workflow => v_job.workflow_id), p_job => p_job, p_error => null);
  return null;
end;
$$;
comment on function clinical.end_stage(uuid) is 'Returns the job of the stage after this one, which the engine opens; after the last stage, records at the file that its pipeline is complete.';
