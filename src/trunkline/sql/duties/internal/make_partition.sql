-- Makes the partition of one table that holds a time no partition has yet, from that day on; returns where it ends.
-- CREATE and ATTACH rather than PARTITION OF, which would lock the parent exclusively. Rows that
-- the default partition caught meanwhile are moved first, since ATTACH refuses to pass them over.
create or replace function trunkline_internal.make_partition(
  p_parent text,
  p_column text,
  p_at timestamptz,
  p_step interval,
  p_in_use boolean
)
returns timestamptz
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_from text;
  v_lower timestamptz;
  v_name text;
  v_to text;
  v_upper timestamptz;
begin
  select greatest(date_trunc('day', p_at, 'UTC'), max(p.upper_bound) filter (where p.upper_bound <= p_at))
  into v_lower
  from trunkline_internal.partitions as p
  where p.parent = p_parent;
  select least(v_lower + p_step, min(p.lower_bound) filter (where p.lower_bound > v_lower))
  into v_upper
  from trunkline_internal.partitions as p
  where p.parent = p_parent;
  if p_in_use then
    -- An insert that has already chosen the default partition would fail with a check violation while ATTACH runs. Behind
    -- this lock it chooses again. The wait is bounded by lock_timeout; the next run tries the span again.
    execute format('lock table trunkline_internal.%I in access exclusive mode', p_parent);
  end if;
  v_from := trunkline_internal.bound_literal(p_parent => p_parent, p_bound => v_lower);
  v_to := trunkline_internal.bound_literal(p_parent => p_parent, p_bound => v_upper);
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
    p_parent || '_default', p_column, v_from, v_to, v_name
  );
  execute format(
    'alter table trunkline_internal.%I attach partition trunkline_internal.%I for values from (%L) to (%L)',
    p_parent, v_name, v_from, v_to
  );
  return v_upper;
end;
$$;
comment on function trunkline_internal.make_partition(text, text, timestamptz, interval, boolean) is 'Makes the partition of one table that holds a time no partition has yet, from that day on; returns where it ends.';
