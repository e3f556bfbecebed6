-- Returns the release of the package that last applied the functions, such as 1.4.0; null if none is recorded.
-- Read-only. A client that is too old for the schema names this release as the one it needs.
create or replace function trunkline.schema_release()
returns text
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return (select r.release from trunkline_internal.schema_release as r);
end;
$$;
comment on function trunkline.schema_release() is 'Returns the release of the package that last applied the functions, such as 1.4.0; null if none is recorded.';
