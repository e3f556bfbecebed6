-- Returns the name of this database in the store: files of a store that another database has marked are not deleted.
create or replace function trunkline.storage_installation()
returns uuid
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select s.installation from trunkline_internal.store_sweep as s
$$;
comment on function trunkline.storage_installation() is 'Returns the name of this database in the store: files of a store that another database has marked are not deleted.';
