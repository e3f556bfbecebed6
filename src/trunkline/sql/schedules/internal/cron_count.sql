-- Counts the due times from p_due (included) to p_until (excluded), at most 1000.
-- run_schedule calls it for the due times that it skips. Bounded, because a year has half a million minutes.
create or replace function trunkline_internal.cron_count(p_cron text, p_time_zone text, p_due timestamptz, p_until timestamptz)
returns integer
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_most constant integer := 1000;
  v_due timestamptz := p_due;
  v_count integer := 0;
begin
  while v_due < p_until and v_count < c_most loop
    v_count := v_count + 1;
    v_due := trunkline_internal.cron_next(p_cron => p_cron, p_time_zone => p_time_zone, p_after => v_due);
  end loop;
  return v_count;
end;
$$;
comment on function trunkline_internal.cron_count(text, text, timestamptz, timestamptz) is 'Counts the due times from p_due (included) to p_until (excluded), at most 1000.';
