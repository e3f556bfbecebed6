-- Replaces changes of storage by their sum for each tenant.
create or replace function trunkline_internal.add_up_storage(p_limit integer)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (select from trunkline_internal.storage_usage as u group by u.tenant having count(*) > 10) then
    return;
  end if;
  with taken as (
    delete from trunkline_internal.storage_usage as u
    where u.usage_id = any(array(
      select t.usage_id from trunkline_internal.storage_usage as t order by t.usage_id limit 10 * p_limit for update of t skip locked
    ))
    returning u.tenant, u.bytes, u.files
  )
  insert into trunkline_internal.storage_usage (bytes, files, tenant)
  select sum(t.bytes), sum(t.files), t.tenant
  from taken as t
  group by t.tenant
  having sum(t.bytes) <> 0 or sum(t.files) <> 0;
end;
$$;
comment on function trunkline_internal.add_up_storage(integer) is 'Replaces changes of storage by their sum for each tenant.';
