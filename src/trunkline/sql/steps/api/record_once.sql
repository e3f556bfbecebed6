-- Records the result of a step that runs once for all jobs of a workflow, and resumes the jobs that wait for it; returns ok, cancel or lost.
-- blocked | scheduled -> ready for each of them. Lost: another attempt runs the step by now; nothing is recorded.
-- Takes the lock of the step, then rows of waiting in id order.
create or replace function trunkline.record_once(p_worker text, p_job uuid, p_attempt integer, p_name text, p_result jsonb)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_running trunkline_internal.running;
  v_scope uuid;
begin
  v_running := trunkline_internal.hold_attempt(p_worker => p_worker, p_job => p_job, p_attempt => p_attempt);
  v_scope := coalesce(v_running.workflow_id, p_job);
  perform trunkline_internal.check_recording(
    p_jobs => array[p_job], p_names => array[p_name], p_keys => array['#1'], p_places => array[1], p_results => array[p_result]
  );
  perform pg_advisory_xact_lock(1953657500, trunkline_internal.wait_lock(
    p_job => p_job, p_tenant => null, p_address => null, p_scope => v_scope, p_name => p_name
  ));
  update trunkline_internal.once_steps as o
  set recorded_at = trunkline.clock(), result = p_result
  where o.scope = v_scope
    and o.name = p_name
    and o.holder = p_job
    and o.attempt = p_attempt
    and o.recorded_at is null;
  if not found and not exists (
    select from trunkline_internal.once_steps as o
    where o.scope = v_scope and o.name = p_name and o.holder = p_job and o.attempt = p_attempt
  ) then
    return 'lost';
  end if;
  if v_running.has_files then
    perform trunkline_internal.keep_artifacts(
      p_jobs => array[p_job], p_attempts => array[p_attempt], p_steps => array[p_name], p_keys => array['#once']
    );
    perform trunkline_internal.publish_once(p_running => v_running, p_result => p_result, p_now => trunkline.clock());
  end if;
  perform trunkline_internal.resume_jobs(
    p_jobs => array(
      select w.job_id
      from trunkline_internal.job_waits as w
      where w.reference = v_scope and w.kind = 'once' and w.name = p_name
    ),
    p_cause => 'once ' || p_name
  );
  return case when v_running.cancel_requested_at is null then 'ok' else 'cancel' end;
end;
$$;
comment on function trunkline.record_once(text, uuid, integer, text, jsonb) is 'Records the result of a step that runs once for all jobs of a workflow, and resumes the jobs that wait for it; returns ok, cancel or lost.';
