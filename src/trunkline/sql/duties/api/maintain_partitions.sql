-- Duty: creates partitions ahead of time, drops at most one past retention per table, and removes dead letters acknowledged long ago; returns how many changes it made.
create or replace function trunkline.maintain_partitions()
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
set lock_timeout = '50ms'
set default_tablespace = ''
set default_table_access_method = 'heap'
as $$
begin
  return (select coalesce(r.done, 0) from trunkline_internal.guard_duty(p_duty => 'maintain_partitions') as r);
end;
$$;
comment on function trunkline.maintain_partitions() is 'Duty: creates partitions ahead of time, drops at most one past retention per table, and removes dead letters acknowledged long ago; returns how many changes it made.';
