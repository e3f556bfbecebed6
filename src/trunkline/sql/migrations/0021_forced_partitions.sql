-- why: partitions were not forced to row security as their parents are; who may install was recorded nowhere
-- breaking: no

create table trunkline_internal.installers (
  role text not null constraint installers_pkey primary key,
  recorded_at timestamptz not null default clock_timestamp()
);
comment on table trunkline_internal.installers is 'Roles that installed, upgraded or restored the schema: the logins that may be members of trunkline_owner.';
alter table trunkline_internal.installers enable row level security, force row level security;
create policy owner_rows on trunkline_internal.installers to trunkline_owner using (true) with check (true);
insert into trunkline_internal.installers (role) select distinct m.applied_by from trunkline_internal.schema_migrations as m;

-- Forced like their parents. The policy lets the owner move rows out of a default partition, and pg_dump read each of
-- them. make_partitions creates dated partitions with the same two statements.
do $$
declare
  v_partition regclass;
begin
  for v_partition in
    select i.inhrelid
    from pg_catalog.pg_inherits as i
    join pg_catalog.pg_class as p on p.oid = i.inhparent
    where p.relkind = 'p' and p.relnamespace = 'trunkline_internal'::regnamespace
    order by i.inhrelid
  loop
    execute format('alter table %s enable row level security, force row level security', v_partition);
    execute format('create policy owner_rows on %s to trunkline_owner using (true) with check (true)', v_partition);
  end loop;
end
$$;
