-- Returns how long artifacts of a kind are kept.
create or replace function trunkline_internal.artifact_retention(p_kind text)
returns interval
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(
    (select k.retention from trunkline_internal.artifact_kinds as k where k.kind = p_kind),
    -- A large result belongs to its job.
    case when p_kind = 'result' then trunkline_internal.setting(p_name => 'finished_retention')::interval end,
    trunkline_internal.setting(p_name => 'artifact_retention')::interval
  );
end;
$$;
comment on function trunkline_internal.artifact_retention(text) is 'Returns how long artifacts of a kind are kept.';
