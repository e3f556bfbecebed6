-- Tells which version of the schema this database has and which clients it serves.
-- Reads only. Called by every client when it connects. A change that old clients do not survive
-- raises c_oldest_contract, which they compare with the contract they were written for.
create or replace function trunkline.schema_version()
returns trunkline.schema_version_info
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $function$
declare
  c_contract constant integer := 5;
  c_oldest_contract constant integer := 5;
  v_version integer;
begin
  select coalesce(max(m.version), 0) into v_version from trunkline_internal.schema_migrations as m;
  return (v_version, c_contract, c_oldest_contract);
end
$function$;
comment on function trunkline.schema_version() is 'Tells which version of the schema this database has and which clients it serves.';
