-- Duty: makes partitions ahead, drops at most one past retention per table, removes long acknowledged dead letters; tells how much it did.
-- The lock timeout is a clause of the function: it never waits behind a reader, and the session's own
-- setting is untouched. A partition that could not be dropped is tried again a minute later. The time zone is a clause
-- too, because a day may have 23 hours in the session's zone, and so are the session's defaults for new tables.
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
declare
  v_done integer := 0;
  v_now timestamptz;
  v_outcome text;
  v_parent text;
begin
  perform trunkline_internal.require_read_committed();
  if not trunkline_internal.duty_begin(p_duty => 'maintain_partitions') then
    return 0;
  end if;
  begin
    v_now := trunkline.clock();
    for v_parent in select t.parent from trunkline_internal.partitioned_tables as t order by t.parent desc loop
      v_done := v_done + trunkline_internal.make_partitions(p_parent => v_parent, p_now => v_now);
      v_outcome := trunkline_internal.drop_expired_partition(p_parent => v_parent, p_now => v_now);
      if v_outcome = 'dropped' then
        v_done := v_done + 1;
      elsif v_outcome = 'busy' then
        raise warning 'partitions of % past retention are in use; tried again at the next run', v_parent;
      end if;
    end loop;
    v_done := v_done + trunkline_internal.sweep_dead(p_now => v_now, p_limit => 1000);
    perform trunkline_internal.duty_end(p_duty => 'maintain_partitions', p_rows => v_done);
  exception
    when others then
      v_done := 0;
      perform trunkline_internal.duty_failed(p_duty => 'maintain_partitions', p_sqlstate => sqlstate, p_message => sqlerrm);
  end;
  return v_done;
end;
$$;
comment on function trunkline.maintain_partitions() is 'Duty: makes partitions ahead, drops at most one past retention per table, removes long acknowledged dead letters; tells how much it did.';
