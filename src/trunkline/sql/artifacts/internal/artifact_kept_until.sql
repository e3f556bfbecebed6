-- Returns until when an artifact whose time has come is kept at least; a time in the past if it may be deleted.
-- The retention of a job of a workflow starts when the workflow ends, and a large result is kept as long as its job is.
create or replace function trunkline_internal.artifact_kept_until(p_artifact trunkline_internal.artifacts, p_now timestamptz)
returns timestamptz
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_retention interval := trunkline_internal.artifact_retention(p_kind => p_artifact.kind);
  v_workflow trunkline_internal.workflows;
begin
  select w.* into v_workflow from trunkline_internal.workflows as w where w.workflow_id = p_artifact.workflow_id;
  if found then
    if v_workflow.state = 'live' then
      return p_now + v_retention;
    elsif trunkline_internal.keeps_results(p_workflow => v_workflow) then
      -- Nothing is called when the last reason is gone, so the duty asks again.
      return p_now + least(v_retention, interval '1 day');
    end if;
    return greatest(v_workflow.ended_at, p_artifact.published_at) + v_retention;
  elsif p_artifact.kind <> 'result' then
    return p_artifact.expires_at;
  elsif trunkline_internal.keeps_steps(p_job => p_artifact.job_id) then
    -- A step that runs once was recorded, and its job has not ended.
    return p_now + least(v_retention, interval '1 day');
  end if;
  -- The retention of jobs may have been raised since.
  return greatest(p_artifact.expires_at, p_artifact.published_at + v_retention);
end;
$$;
comment on function trunkline_internal.artifact_kept_until(trunkline_internal.artifacts, timestamptz) is 'Returns until when an artifact whose time has come is kept at least; a time in the past if it may be deleted.';
