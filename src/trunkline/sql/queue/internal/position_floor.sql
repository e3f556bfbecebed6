-- Returns where a claim starts scanning a lane: at its accepted position, or lower if a late transaction has committed since.
create or replace function trunkline_internal.position_floor(p_position jsonb, p_name text, p_snapshot pg_snapshot)
returns bigint
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_floor bigint;
begin
  if p_position ? 'late' then
    select min((e.value ->> p_name)::bigint)
    into v_floor
    from jsonb_each(p_position -> 'late') as e
    where e.value ? p_name and pg_visible_in_snapshot(e.key::xid8, p_snapshot);
  end if;
  return coalesce(v_floor, (p_position -> 'lanes' -> p_name ->> 0)::bigint, 0);
end;
$$;
comment on function trunkline_internal.position_floor(jsonb, text, pg_snapshot) is 'Returns where a claim starts scanning a lane: at its accepted position, or lower if a late transaction has committed since.';
