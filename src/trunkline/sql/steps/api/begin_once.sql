-- Asks for the result of a step that runs once for all jobs of a workflow; returns over with the result, run, wait or cancel.
-- Run: this attempt runs the step and calls record_once. Wait: another attempt runs it; the job has to be suspended. An
-- attempt that no longer runs is replaced by the first one that asks. A job without a workflow runs the step for itself.
-- Of a result in the store, the file is returned too.
create or replace function trunkline.begin_once(p_worker text, p_job uuid, p_attempt integer, p_place integer, p_name text)
returns trunkline.wait_answer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  -- A holder that fails or is lost notifies nobody, so waiting jobs check again.
  c_check constant interval := interval '15 seconds';
  v_now timestamptz;
  v_once trunkline_internal.once_steps;
  v_running trunkline_internal.running;
  v_scope uuid;
begin
  v_running := trunkline_internal.hold_attempt(p_worker => p_worker, p_job => p_job, p_attempt => p_attempt);
  perform trunkline_internal.check_recording(
    p_jobs => array[p_job], p_names => array[p_name], p_keys => array['#1'], p_places => array[p_place],
    p_results => array[null::jsonb]
  );
  if v_running.cancel_requested_at is not null then
    return row('cancel', null, null, null, null)::trunkline.wait_answer;
  end if;
  v_now := trunkline.clock();
  v_scope := coalesce(v_running.workflow_id, p_job);
  loop
    insert into trunkline_internal.once_steps (scope, started_at, holder, attempt, name)
    values (v_scope, v_now, p_job, p_attempt, p_name)
    on conflict do nothing;
    select o.* into v_once
    from trunkline_internal.once_steps as o
    where o.scope = v_scope and o.name = p_name
    for update of o;
    -- Again if reset_step has just deleted the row that was in the way.
    exit when found;
  end loop;
  if v_once.recorded_at is null and not exists (
    select from trunkline_internal.running as r
    where r.job_id = v_once.holder and r.attempt = v_once.attempt and r.job_id <> p_job
  ) then
    update trunkline_internal.once_steps as o
    set holder = p_job, attempt = p_attempt, started_at = v_now
    where o.scope = v_scope and o.name = p_name;
    delete from trunkline_internal.job_waits as w where w.job_id = p_job and w.kind = 'once' and w.name = p_name;
    return row('run', null, null, null, null)::trunkline.wait_answer;
  end if;
  if v_once.recorded_at is not null then
    delete from trunkline_internal.job_waits as w where w.job_id = p_job and w.kind = 'once' and w.name = p_name;
    return (
      select row('over', null, v_once.result, max(a.path), max(a.sha256))::trunkline.wait_answer
      from trunkline_internal.artifacts as a
      where a.artifact_id = trunkline_internal.result_reference(p_result => v_once.result)
        and a.job_id = v_once.holder
        and a.kind = 'result'
    );
  end if;
  insert into trunkline_internal.job_waits (job_id, since, until, reference, attempt, place, kind, name, key, tenant)
  values (p_job, v_now, v_now + c_check, v_scope, p_attempt, p_place, 'once', p_name, '#1', v_running.tenant)
  on conflict (job_id, kind, name, key) do update set attempt = excluded.attempt, until = excluded.until;
  return row('wait', v_now + c_check, null, null, null)::trunkline.wait_answer;
end;
$$;
comment on function trunkline.begin_once(text, uuid, integer, integer, text) is 'Asks for the result of a step that runs once for all jobs of a workflow; returns over with the result, run, wait or cancel.';
