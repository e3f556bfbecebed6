-- Lets profiles with audited tasks copy events before their partition is dropped; false if that is not possible now.
-- A profile does so with the function keep_events(timestamptz) in its schema. Anybody who registers tasks can
-- name a profile, so only a function of trunkline_owner is called. A session that acts for one tenant does not see all
-- events. Nobody can write to the partition until it is dropped. Called by drop_expired_partition.
create or replace function trunkline_internal.keep_events(p_partition text, p_before timestamptz)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_keeper record;
begin
  for v_keeper in
    select distinct n.nspname
    from trunkline_internal.tasks as t
    join pg_catalog.pg_namespace as n on n.nspname = t.profile
    join pg_catalog.pg_proc as p on p.pronamespace = n.oid
    where t.audit
      and p.proname = 'keep_events'
      and p.proargtypes = array['timestamptz'::regtype]::oidvector
      and p.proowner = 'trunkline_owner'::regrole
  loop
    if trunkline.tenant_scope() is not null then
      return false;
    end if;
    execute format('lock table trunkline_internal.%I in share mode', p_partition);
    execute format('select %I.keep_events($1)', v_keeper.nspname) using p_before;
  end loop;
  return true;
exception
  when lock_not_available then
    raise;
  when others then
    raise warning 'events of % are kept, because a profile could not copy them: %', p_partition, sqlerrm;
    return false;
end;
$$;
comment on function trunkline_internal.keep_events(text, timestamptz) is 'Lets profiles with audited tasks copy events before their partition is dropped; false if that is not possible now.';
