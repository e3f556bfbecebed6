-- Returns the units that a call really used, if known: units, or the received bytes if the quota of the limit counts bytes.
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
comment on function trunkline_internal.actual_units(jsonb, integer) is 'Returns the units that a call really used, if known: units, or the received bytes if the quota of the limit counts bytes.';
