-- Returns artifacts of a job or a workflow, or of all, oldest first; p_after is the last id of the page before.
create or replace function trunkline.list_artifacts(
  p_job uuid default null,
  p_workflow uuid default null,
  p_kind text default null,
  p_name text default null,
  p_deleted boolean default false,
  p_limit integer default 100,
  p_after uuid default null
)
returns setof trunkline.stored_artifact
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
  v_scope text := trunkline.tenant_scope();
begin
  if p_limit is null or p_limit not between 1 and 1000 then
    perform trunkline_internal.refuse(
      p_name => 'limit_out_of_range', p_detail => jsonb_build_object('limit', p_limit, 'minimum', 1, 'maximum', 1000)
    );
  end if;
  return query
  select a.artifact_id, a.job_id, a.workflow_id, a.tenant, a.task, a.attempt, a.step, a.name, a.kind, a.content_type, a.bytes, a.sha256,
    a.duration, a.path, a.published_at, a.expires_at, a.deleted_at, a.delete_reason, a.missing_at
  from trunkline_internal.artifacts as a
  where (p_job is null or a.job_id = p_job)
    and (p_workflow is null or a.workflow_id = p_workflow)
    and (p_kind is null or a.kind = p_kind)
    and (p_name is null or a.name = p_name)
    and (p_deleted or a.deleted_at is null)
    and (p_after is null or a.artifact_id > p_after)
    and (v_scope is null or a.tenant = v_scope)
  order by a.artifact_id
  limit p_limit;
end;
$$;
comment on function trunkline.list_artifacts(uuid, uuid, text, text, boolean, integer, uuid) is 'Returns artifacts of a job or a workflow, or of all, oldest first; p_after is the last id of the page before.';
