-- Returns true if a stored transaction id has not been assigned on this server yet.
-- Such an id comes from another server: the database was restored from a dump, and ids start low on this server.
create or replace function trunkline_internal.is_ahead(p_xid xid8)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_xid is null or p_xid < pg_snapshot_xmax(pg_current_snapshot()) then
    return false;
  end if;
  -- The snapshot's upper bound is one past the last transaction that ended, so ids of running transactions may lie beyond
  -- it. The function called here knows the next id and raises an error for that id and every later one.
  perform pg_xact_status(p_xid);
  return false;
exception
  when invalid_parameter_value then
    return true;
end;
$$;
comment on function trunkline_internal.is_ahead(xid8) is 'Returns true if a stored transaction id has not been assigned on this server yet.';
