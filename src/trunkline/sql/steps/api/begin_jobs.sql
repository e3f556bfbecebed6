-- Starts jobs for a running attempt to wait for, or returns what became of those that an earlier attempt started.
-- The jobs are a workflow of kind batch that belongs to the job; p_steps are the steps of its graph. Outcome over: all have
-- completed, recorded with the workflow's id. Failed: the result names the first job that is dead or cancelled; nothing is
-- recorded, so that the next attempt waits for the workflow again if an operator has retried it. Wait: the job has to be
-- suspended. Jobs and wait are stored by one transaction. If an earlier attempt asked for jobs of other tasks or with other
-- payloads, the result has changed: true, and in steps the tasks and numbers of the jobs that it started. Locks as start_workflow.
create or replace function trunkline.begin_jobs(
  p_worker text,
  p_job uuid,
  p_attempt integer,
  p_place integer,
  p_key text,
  p_steps jsonb,
  p_detach boolean default false
)
returns trunkline.wait_answer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_deepest constant integer := 10;
  v_changed jsonb;
  v_depth integer;
  v_hash bigint;
  v_now timestamptz;
  v_running trunkline_internal.running;
  v_state text;
  v_stored bigint;
  v_workflow uuid;
begin
  v_running := trunkline_internal.hold_attempt(p_worker => p_worker, p_job => p_job, p_attempt => p_attempt);
  perform trunkline_internal.check_recording(
    p_jobs => array[p_job], p_names => array['jobs'], p_keys => array[p_key], p_places => array[p_place],
    p_results => array[null::jsonb]
  );
  if v_running.cancel_requested_at is not null then
    return row('cancel', null, null, null, null)::trunkline.wait_answer;
  end if;
  v_now := trunkline.clock();
  v_hash := trunkline_internal.requests_hash(p_steps => p_steps);
  select (s.result ->> 'workflow')::uuid, s.arguments_hash into v_workflow, v_stored
  from trunkline_internal.recorded_steps as s
  where s.job_id = p_job
    and s.kind = 'jobs'
    and s.name = 'jobs'
    and s.key = p_key
    and s.day >= trunkline_internal.steps_since(p_job => p_job);
  if found then
    return row('over', null, jsonb_build_object('workflow', v_workflow) || trunkline_internal.changed_jobs(
      p_workflow => v_workflow, p_stored => v_stored, p_hash => v_hash
    ), null, null)::trunkline.wait_answer;
  end if;
  -- Jobs that were stopped because this job was dead are started again when it is replayed.
  select w.reference, w.arguments_hash into v_workflow, v_stored
  from trunkline_internal.job_waits as w
  where w.job_id = p_job
    and w.kind = 'jobs'
    and w.name = 'jobs'
    and w.key = p_key
    and not exists (
      select from trunkline_internal.workflows as f
      where f.workflow_id = w.reference and f.state = 'cancelled' and f.stop_kind = 'parent'
    );
  if not found then
    select w.depth::integer into v_depth from trunkline_internal.workflows as w where w.workflow_id = v_running.workflow_id;
    v_depth := coalesce(v_depth, 0) + 1;
    if v_depth > c_deepest then
      perform trunkline_internal.refuse(
        p_name => 'jobs_too_deep', p_detail => jsonb_build_object('job', p_job, 'depth', v_depth, 'maximum', c_deepest)
      );
    end if;
    v_workflow := (trunkline_internal.store_workflow(
      p_graph => jsonb_strip_nulls(jsonb_build_object(
        'name', 'jobs of ' || left(v_running.task, 150), 'kind', 'batch', 'tenant', v_running.tenant,
        'priority', v_running.lane >> 1, 'correlation_id', v_running.correlation_id
      )) || jsonb_build_object('steps', p_steps),
      p_parent => p_job, p_parent_attempt => p_attempt, p_depth => v_depth, p_detached => coalesce(p_detach, false)
    )).workflow_id;
    v_stored := v_hash;
  end if;
  v_changed := trunkline_internal.changed_jobs(p_workflow => v_workflow, p_stored => v_stored, p_hash => v_hash);
  select w.state into v_state from trunkline_internal.workflows as w where w.workflow_id = v_workflow;
  if v_state = 'live' then
    insert into trunkline_internal.job_waits (
      job_id, since, reference, arguments_hash, attempt, place, kind, name, key, tenant
    )
    values (p_job, v_now, v_workflow, v_stored, p_attempt, p_place, 'jobs', 'jobs', p_key, v_running.tenant)
    on conflict (job_id, kind, name, key) do update
    set attempt = excluded.attempt, place = excluded.place, reference = excluded.reference, arguments_hash = excluded.arguments_hash;
    return row('wait', null, jsonb_build_object('workflow', v_workflow) || v_changed, null, null)::trunkline.wait_answer;
  end if;
  if v_state is distinct from 'completed' then
    return row('failed', null, trunkline_internal.failed_child(p_workflow => v_workflow) || v_changed, null, null)::trunkline.wait_answer;
  end if;
  insert into trunkline_internal.recorded_steps (
    day, recorded_at, job_id, arguments_hash, attempt, place, kind, name, key, result
  )
  values (
    (v_now at time zone 'UTC')::date, v_now, p_job, v_stored, p_attempt, p_place, 'jobs', 'jobs', p_key,
    jsonb_build_object('workflow', v_workflow)
  )
  on conflict do nothing;
  delete from trunkline_internal.job_waits as w
  where w.job_id = p_job and w.kind = 'jobs' and w.name = 'jobs' and w.key = p_key;
  return row('over', null, jsonb_build_object('workflow', v_workflow) || v_changed, null, null)::trunkline.wait_answer;
end;
$$;
comment on function trunkline.begin_jobs(text, uuid, integer, integer, text, jsonb, boolean) is 'Starts jobs for a running attempt to wait for, or returns what became of those that an earlier attempt started.';
