-- Drops the oldest expired partition of a table; returns dropped, kept (still needed), busy (a reader holds it) or none.
-- Waits at most the caller's lock_timeout: a DROP queued behind a reader would block every completion.
create or replace function trunkline_internal.drop_expired_partition(p_parent text, p_now timestamptz)
returns text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_old record;
begin
  select p.partition, p.lower_bound, p.upper_bound
  into v_old
  from trunkline_internal.partitions as p
  join trunkline_internal.partitioned_tables as t on t.parent = p.parent
  where p.parent = p_parent
    and p.upper_bound <= p_now - trunkline_internal.setting(p_name => t.retention_setting)::interval
  order by p.lower_bound
  limit 1;
  if not found then
    return 'none';
  end if;
  if p_parent = 'bodies' and not trunkline_internal.rescue_bodies(
    p_lower => (v_old.lower_bound at time zone 'UTC')::date,
    p_upper => (v_old.upper_bound at time zone 'UTC')::date,
    p_today => (p_now at time zone 'UTC')::date
  ) then
    return 'kept';
  end if;
  if p_parent = 'recorded_steps' then
    perform trunkline_internal.rescue_steps(p_partition => v_old.partition, p_today => (p_now at time zone 'UTC')::date);
  end if;
  if p_parent = 'events'
    and not trunkline_internal.keep_events(p_partition => v_old.partition, p_before => v_old.upper_bound)
  then
    return 'kept';
  end if;
  if p_parent = 'finished' then
    if not trunkline_internal.rescue_cancelled(
      p_lower => v_old.lower_bound, p_upper => v_old.upper_bound, p_now => p_now
    ) then
      return 'kept';
    end if;
    perform trunkline_internal.rescue_results(p_lower => v_old.lower_bound, p_upper => v_old.upper_bound);
  end if;
  execute format('drop table trunkline_internal.%I', v_old.partition);
  delete from trunkline_internal.partitions as p where p.partition = v_old.partition;
  return 'dropped';
exception
  when lock_not_available then
    return 'busy';
end;
$$;
comment on function trunkline_internal.drop_expired_partition(text, timestamptz) is 'Drops the oldest expired partition of a table; returns dropped, kept (still needed), busy (a reader holds it) or none.';
