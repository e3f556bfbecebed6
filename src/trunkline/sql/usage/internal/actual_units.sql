-- Tells how many units of a limit a call really took, if somebody said so: units, or the bytes that arrived where its quota counts bytes.
create or replace function trunkline_internal.actual_units(p_actual jsonb, p_limit integer)
returns bigint
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce((p_actual ->> 'units')::bigint, case
    when p_actual ->> 'bytes' is not null
      and exists (select from trunkline_internal.limits as l where l.limit_id = p_limit and l.quota_unit = 'bytes')
    then (p_actual ->> 'bytes')::bigint
  end);
end;
$$;
comment on function trunkline_internal.actual_units(jsonb, integer) is 'Tells how many units of a limit a call really took, if somebody said so: units, or the bytes that arrived where its quota counts bytes.';
