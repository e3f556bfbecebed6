-- After the last script of the last profile: the record goes, and the schema if it is ours and empty.

do $sweep$
begin
  if to_regclass('profile_schema.trunkline_profile_steps') is not null
    and not exists (select from profile_schema.trunkline_profile_steps)
  then
    drop table profile_schema.trunkline_profile_steps;
    if exists (
        select from pg_namespace as n
        where n.oid = to_regnamespace('profile_schema') and n.nspowner = 'trunkline_owner'::regrole
      )
      and not exists (select from pg_class as c where c.relnamespace = to_regnamespace('profile_schema'))
      and not exists (select from pg_proc as p where p.pronamespace = to_regnamespace('profile_schema'))
    then
      drop schema profile_schema;
    end if;
  end if;
end
$sweep$;
