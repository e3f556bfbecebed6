-- Gives the files that durable steps staged to their jobs: the attempt that completes publishes them, and sweeps spare them.
-- The functions that record steps call it in their transaction. Files of another call of the same step stay with that call.
create or replace function trunkline_internal.keep_artifacts(p_jobs uuid[], p_attempts integer[], p_steps text[], p_keys text[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  update trunkline_internal.staged_artifacts as s
  set kept = true
  from unnest(p_jobs, p_attempts, p_steps, p_keys) as a (job_id, attempt, step, key)
  where s.job_id = a.job_id
    and s.attempt = a.attempt
    and s.step = a.step
    and (s.step_key is null or s.step_key = a.key)
    and s.staged_at is not null
    and not s.kept;
end;
$$;
comment on function trunkline_internal.keep_artifacts(uuid[], integer[], text[], text[]) is 'Gives the files that durable steps staged to their jobs: the attempt that completes publishes them, and sweeps spare them.';
