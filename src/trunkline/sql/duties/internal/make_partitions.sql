-- Makes the partitions of one table up to a time, and those of rows that the default partition caught; returns how many.
-- Rows land in the default while the duty does not run, and when the clock steps: back beyond the first partition, or
-- forward beyond the last. What stays there is never dropped, so their days get partitions first, whenever those are; at
-- most sixty of them a run. A partition ends where the next one begins.
create or replace function trunkline_internal.make_partitions(p_parent text, p_now timestamptz)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_most constant integer := 60;
  v_at timestamptz := date_trunc('day', p_now, 'UTC');
  v_caught timestamptz;
  v_column text := case p_parent when 'finished' then 'finished_at' when 'events' then 'at' else 'day' end;
  v_covered timestamptz;
  v_made integer := 0;
  v_spec record;
  v_step interval;
  v_until timestamptz := p_now + trunkline_internal.setting(p_name => 'partitions_ahead')::interval;
begin
  select t.unit, trunkline_internal.setting(p_name => t.retention_setting)::interval as retention
  into strict v_spec
  from trunkline_internal.partitioned_tables as t
  where t.parent = p_parent;
  -- A year of days would make every plan over the table slow: above 60 days they are weeks.
  v_step := case when v_spec.unit = 'week' or v_spec.retention > interval '60 days' then interval '7 days' else interval '1 day' end;
  while v_made < c_most loop
    execute format(
      'select to_timestamp(extract(epoch from min(%I))) from trunkline_internal.%I', v_column, p_parent || '_default'
    ) into v_caught;
    exit when v_caught is null;
    perform trunkline_internal.make_partition(
      p_parent => p_parent, p_column => v_column, p_at => v_caught, p_step => v_step, p_in_use => true
    );
    v_made := v_made + 1;
  end loop;
  while v_at <= v_until loop
    select p.upper_bound into v_covered
    from trunkline_internal.partitions as p
    where p.parent = p_parent and p.lower_bound <= v_at and p.upper_bound > v_at;
    if found then
      v_at := v_covered;
    else
      v_at := trunkline_internal.make_partition(
        p_parent => p_parent, p_column => v_column, p_at => v_at, p_step => v_step, p_in_use => v_at <= p_now
      );
      v_made := v_made + 1;
    end if;
  end loop;
  return v_made;
end;
$$;
comment on function trunkline_internal.make_partitions(text, timestamptz) is 'Makes the partitions of one table up to a time, and those of rows that the default partition caught; returns how many.';
