-- Makes the partitions of one table up to a time, each starting where the last one ends; tells how many.
-- CREATE and ATTACH rather than PARTITION OF, which would lock the parent against everybody. Rows that
-- the default partition caught meanwhile are moved first, since ATTACH refuses to pass them over.
create or replace function trunkline_internal.make_partitions(p_parent text, p_now timestamptz)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caught timestamptz;
  v_column text := case p_parent when 'finished' then 'finished_at' when 'events' then 'at' else 'day' end;
  v_lower timestamptz;
  v_made integer := 0;
  v_name text;
  v_spec record;
  v_step interval;
  v_until timestamptz := p_now + trunkline_internal.setting(p_name => 'partitions_ahead')::interval;
  v_upper timestamptz;
begin
  select t.unit, trunkline_internal.setting(p_name => t.retention_setting)::interval as retention
  into strict v_spec
  from trunkline_internal.partitioned_tables as t
  where t.parent = p_parent;
  -- A year of days would make every plan over the table slow: above 60 days they are weeks.
  v_step := case when v_spec.unit = 'week' or v_spec.retention > interval '60 days' then interval '7 days' else interval '1 day' end;
  -- After a long pause the default partition holds days gone by as well: they get theirs first,
  -- since what stays in the default is never dropped.
  execute format(
    'select to_timestamp(extract(epoch from min(%I))) from trunkline_internal.%I', v_column, p_parent || '_default'
  ) into v_caught;
  select greatest(max(p.upper_bound), date_trunc('day', least(p_now, v_caught), 'UTC'))
  into v_lower
  from trunkline_internal.partitions as p
  where p.parent = p_parent;
  while v_lower <= v_until loop
    v_upper := v_lower + v_step;
    if v_lower <= p_now then
      -- Somebody who is about to insert into the default while ATTACH runs would fail with a
      -- check violation, because he has chosen his partition already; behind this lock he chooses
      -- anew. It waits no longer than lock_timeout, and the span is tried again at the next run.
      execute format('lock table trunkline_internal.%I in access exclusive mode', p_parent);
    end if;
    v_name := p_parent || '_' || to_char(v_lower at time zone 'UTC', 'YYYYMMDD');
    insert into trunkline_internal.partitions (parent, partition, lower_bound, upper_bound)
    values (p_parent, v_name, v_lower, v_upper);
    execute format(
      'create table trunkline_internal.%I (like trunkline_internal.%I including defaults including constraints)',
      v_name, p_parent
    );
    -- Same policy as the parent. Without it, not even the owner would see the rows, and pg_dump would not copy them.
    execute format('alter table trunkline_internal.%I enable row level security, force row level security', v_name);
    execute format('create policy owner_rows on trunkline_internal.%I to trunkline_owner using (true) with check (true)', v_name);
    execute format(
      'with caught as (delete from trunkline_internal.%1$I where %2$I >= %3$L and %2$I < %4$L returning *) '
      'insert into trunkline_internal.%5$I select * from caught',
      p_parent || '_default', v_column, trunkline_internal.bound_literal(p_parent => p_parent, p_bound => v_lower),
      trunkline_internal.bound_literal(p_parent => p_parent, p_bound => v_upper), v_name
    );
    execute format(
      'alter table trunkline_internal.%I attach partition trunkline_internal.%I for values from (%L) to (%L)',
      p_parent, v_name, trunkline_internal.bound_literal(p_parent => p_parent, p_bound => v_lower),
      trunkline_internal.bound_literal(p_parent => p_parent, p_bound => v_upper)
    );
    v_made := v_made + 1;
    v_lower := v_upper;
  end loop;
  return v_made;
end;
$$;
comment on function trunkline_internal.make_partitions(text, timestamptz) is 'Makes the partitions of one table up to a time, each starting where the last one ends; tells how many.';
