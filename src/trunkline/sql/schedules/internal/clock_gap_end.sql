-- Returns the first whole minute that exists after a local time that is skipped when the clocks go forward.
-- cron_next calls it with a skipped time.
create or replace function trunkline_internal.clock_gap_end(p_time_zone text, p_local timestamp)
returns timestamp
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
  v_missing integer := 0;
  -- PostgreSQL reads a skipped time as that much later, which is a time that exists.
  v_real integer := ceil(extract(epoch from (p_local at time zone p_time_zone at time zone p_time_zone) - p_local) / 60)::integer;
  v_middle integer;
  v_local timestamp;
begin
  while v_real - v_missing > 1 loop
    v_middle := (v_missing + v_real) / 2;
    v_local := p_local + v_middle * interval '1 minute';
    if v_local at time zone p_time_zone at time zone p_time_zone = v_local then
      v_real := v_middle;
    else
      v_missing := v_middle;
    end if;
  end loop;
  return p_local + v_real * interval '1 minute';
end;
$$;
comment on function trunkline_internal.clock_gap_end(text, timestamp) is 'Returns the first whole minute that exists after a local time that is skipped when the clocks go forward.';
