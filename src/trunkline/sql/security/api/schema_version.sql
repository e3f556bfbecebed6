-- Returns the schema version of this database and the client contracts that it serves.
-- Read-only. Every client calls it when it connects. A change that breaks old clients raises c_oldest_contract; a client
-- compares it with the contract that it was written for.
create or replace function trunkline.schema_version()
returns trunkline.schema_version_info
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
  c_contract constant integer := 7;
  c_oldest_contract constant integer := 5;
  v_version integer;
begin
  select coalesce(max(m.version), 0) into v_version from trunkline_internal.schema_migrations as m;
  return (v_version, c_contract, c_oldest_contract);
end
$function$;
comment on function trunkline.schema_version() is 'Returns the schema version of this database and the client contracts that it serves.';
