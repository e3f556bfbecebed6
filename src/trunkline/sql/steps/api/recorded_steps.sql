-- Returns the recorded steps of a running attempt's job to the worker that holds it, in the order of recording.
-- Of a result in the store, the file is returned too.
create or replace function trunkline.recorded_steps(p_worker text, p_job uuid, p_attempt integer)
returns setof trunkline.recorded_step
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
  perform trunkline_internal.hold_attempt(p_worker => p_worker, p_job => p_job, p_attempt => p_attempt);
  return query
  select s.kind, s.name, s.key, s.place, s.arguments_hash, s.result, a.path, a.sha256
  from trunkline_internal.recorded_steps as s
  left join trunkline_internal.staged_artifacts as a
    on a.artifact_id = trunkline_internal.result_reference(p_result => s.result)
      and a.job_id = s.job_id
      and a.kind = 'result'
      and a.step = s.name
      and a.kept
  where s.job_id = p_job and s.day >= trunkline_internal.steps_since(p_job => p_job)
  order by s.place, s.recorded_at;
end;
$$;
comment on function trunkline.recorded_steps(text, uuid, integer) is 'Returns the recorded steps of a running attempt''s job to the worker that holds it, in the order of recording.';
