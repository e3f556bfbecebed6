-- Returns where the file of an artifact goes: tenant, workflow or job, class of the kind, and a name that no other upload has.
create or replace function trunkline_internal.artifact_path(
  p_tenant text,
  p_job uuid,
  p_workflow uuid,
  p_attempt integer,
  p_artifact uuid,
  p_kind text,
  p_name text
)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select format(
    '%s/%s/%s/%s-%s-%s-%s',
    case when coalesce(p_tenant, '') = '' then 'shared' else 't-' || trunkline_internal.path_segment(p_text => p_tenant) end,
    coalesce(p_workflow, p_job), split_part(p_kind, '_', 1), p_job, p_attempt, right(p_artifact::text, 8),
    case
      when p_name ~ '^[A-Za-z0-9._-]{1,80}$' then p_name
      -- The extension stays: a person who looks into the store reads it.
      else
        left(regexp_replace(regexp_replace(p_name, '\.[A-Za-z0-9]{1,10}$', ''), '[^A-Za-z0-9._-]', '_', 'g'), 60)
        || coalesce(substring(p_name from '\.[A-Za-z0-9]{1,10}$'), '')
    end
  )
$$;
comment on function trunkline_internal.artifact_path(text, uuid, uuid, integer, uuid, text, text) is 'Returns where the file of an artifact goes: tenant, workflow or job, class of the kind, and a name that no other upload has.';
