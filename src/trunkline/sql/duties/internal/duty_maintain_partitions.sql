-- Creates partitions ahead of time, drops at most one past retention per table, and removes dead letters acknowledged long ago; returns how many changes it made. The work of trunkline.maintain_partitions.
-- The lock timeout is a clause of the function, so that it never waits behind a reader and leaves the session's setting alone.
-- A partition that could not be dropped is tried again in the next run. The time zone is a clause because a day may have 23
-- hours in the session's zone. The defaults for new tables are clauses because the session may have others.
create or replace function trunkline_internal.duty_maintain_partitions()
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
set lock_timeout = '50ms'
set default_tablespace = ''
set default_table_access_method = 'heap'
as $$
declare
  v_done integer := 0;
  v_now timestamptz := trunkline.clock();
  v_outcome text;
  v_parent text;
begin
  for v_parent in select t.parent from trunkline_internal.partitioned_tables as t order by t.parent desc loop
    v_done := v_done + trunkline_internal.make_partitions(p_parent => v_parent, p_now => v_now);
    v_outcome := trunkline_internal.drop_expired_partition(p_parent => v_parent, p_now => v_now);
    if v_outcome = 'dropped' then
      v_done := v_done + 1;
    elsif v_outcome = 'busy' then
      raise warning 'partitions of % past retention are in use; tried again at the next run', v_parent;
    end if;
  end loop;
  return v_done + trunkline_internal.sweep_dead(p_now => v_now, p_limit => 1000);
end;
$$;
comment on function trunkline_internal.duty_maintain_partitions() is 'Creates partitions ahead of time, drops at most one past retention per table, and removes dead letters acknowledged long ago; returns how many changes it made. The work of trunkline.maintain_partitions.';
