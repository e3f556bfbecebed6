-- Returns when the clocks of a time zone next go back, within 25 hours after a moment; null if they do not.
-- Called by cron_next. 25 hours is longer than any hour or day that was ever repeated, and shorter
-- than the time between any two changes.
create or replace function trunkline_internal.clock_turns_back(p_time_zone text, p_after timestamptz)
returns timestamptz
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before timestamptz := date_trunc('second', p_after, 'UTC');
  v_until timestamptz := v_before + interval '25 hours';
  v_offset interval := (v_before at time zone p_time_zone) - (v_before at time zone 'UTC');
  v_middle timestamptz;
begin
  if (v_until at time zone p_time_zone) - (v_until at time zone 'UTC') >= v_offset then
    return null;
  end if;
  while v_until - v_before > interval '1 second' loop
    v_middle := date_trunc('second', v_before + (v_until - v_before) / 2, 'UTC');
    if (v_middle at time zone p_time_zone) - (v_middle at time zone 'UTC') = v_offset then
      v_before := v_middle;
    else
      v_until := v_middle;
    end if;
  end loop;
  return v_until;
end;
$$;
comment on function trunkline_internal.clock_turns_back(text, timestamptz) is 'Returns when the clocks of a time zone next go back, within 25 hours after a moment; null if they do not.';
