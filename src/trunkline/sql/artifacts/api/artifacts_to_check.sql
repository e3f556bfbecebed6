-- Returns the next artifacts whose files the sweep looks up in the store.
create or replace function trunkline.artifacts_to_check(p_worker text, p_limit integer default 100)
returns setof trunkline.checked_artifact
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform trunkline_internal.check_duty_limit(p_limit => p_limit, p_maximum => 1000);
  return query
  select a.artifact_id, a.path, a.bytes
  from trunkline_internal.store_sweep as s
  join trunkline_internal.artifacts as a
    on a.artifact_id > coalesce(s.artifact_cursor, '00000000-0000-0000-0000-000000000000')
  where s.worker = p_worker
    and s.leased_until >= trunkline.clock()
    and trunkline.tenant_scope() is null
    and a.deleted_at is null
    and a.published_at < trunkline.clock() - trunkline_internal.setting(p_name => 'orphan_age')::interval
  order by a.artifact_id
  limit p_limit;
end;
$$;
comment on function trunkline.artifacts_to_check(text, integer) is 'Returns the next artifacts whose files the sweep looks up in the store.';
