-- Gives up a begun or staged artifact of a running attempt: its reservation ends and its file is queued for removal.
create or replace function trunkline.abandon_artifact(p_worker text, p_job uuid, p_attempt integer, p_artifact uuid)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_staged trunkline_internal.staged_artifacts%rowtype;
begin
  perform trunkline_internal.lock_uploader(p_worker => p_worker, p_job => p_job, p_attempt => p_attempt);
  delete from trunkline_internal.staged_artifacts as s
  where s.artifact_id = p_artifact and s.job_id = p_job and s.attempt = p_attempt
  returning s.* into v_staged;
  if not found then
    return false;
  end if;
  perform trunkline_internal.queue_removals(
    p_paths => array[v_staged.path], p_reason => 'abandoned',
    p_due => trunkline.clock() + case when v_staged.staged_at is null then interval '10 minutes' else interval '0' end
  );
  return true;
end;
$$;
comment on function trunkline.abandon_artifact(text, uuid, integer, uuid) is 'Gives up a begun or staged artifact of a running attempt: its reservation ends and its file is queued for removal.';
