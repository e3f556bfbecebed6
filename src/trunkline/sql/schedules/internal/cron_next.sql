-- Returns the first due time of a cron expression strictly after a moment, in a time zone.
-- When the clocks change it behaves like Debian's cron. A fixed time (neither minute nor hour begins with *) is due once:
-- right after a skipped hour, or in the first occurrence of a repeated hour. Any other expression follows the wall clock:
-- it is not due in a skipped hour, and due in both occurrences of a repeated hour.
-- Independent of the session's TimeZone: it uses only intervals of hours and explicit zones.
create or replace function trunkline_internal.cron_next(p_cron text, p_time_zone text, p_after timestamptz)
returns timestamptz
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fields trunkline_internal.cron_expression := trunkline_internal.cron_fields(p_cron => p_cron);
  v_fixed boolean := not (v_fields.minute_starred or v_fields.hour_starred);
  v_after timestamptz := p_after;
  v_local timestamp;
  v_first timestamptz;
  v_second timestamptz;
  v_day_before timestamptz;
  v_turn timestamptz;
begin
  perform trunkline_internal.check_time_zone(p_time_zone => p_time_zone);
  v_local := date_trunc('minute', v_after at time zone p_time_zone) + interval '1 minute';
  if not v_fixed then
    v_turn := trunkline_internal.clock_turns_back(p_time_zone => p_time_zone, p_after => v_after);
  end if;
  loop
    v_local := trunkline_internal.cron_match(p_fields => v_fields, p_from => v_local);
    if v_local is null then
      perform trunkline_internal.refuse(
        p_name => 'invalid_cron',
        p_detail => jsonb_build_object('cron', p_cron, 'field', 'expression', 'value', p_cron, 'reason', 'never due')
      );
    end if;
    -- PostgreSQL reads a skipped time as a later one, and a repeated time as its second occurrence.
    v_second := v_local at time zone p_time_zone;
    if v_second at time zone p_time_zone <> v_local then
      v_local := trunkline_internal.clock_gap_end(p_time_zone => p_time_zone, p_local => v_local);
      if not v_fixed then
        continue;
      end if;
      v_second := v_local at time zone p_time_zone;
    end if;
    -- The offset of the day before gives the first occurrence of a repeated time.
    v_day_before := v_second - interval '25 hours';
    v_first := (v_local - ((v_day_before at time zone p_time_zone) - (v_day_before at time zone 'UTC'))) at time zone 'UTC';
    if v_first > v_second or v_first at time zone p_time_zone <> v_local then
      v_first := v_second;
    end if;
    if v_fixed then
      if v_first > v_after then
        return v_first;
      end if;
      v_local := v_local + interval '1 minute';
    elsif v_turn <= v_first then
      -- The clocks go back before this match: search again from that change. The next change is months away.
      v_after := v_turn - interval '1 microsecond';
      v_local := date_trunc('minute', (v_turn at time zone p_time_zone) + interval '59 seconds');
      v_turn := null;
    else
      return case when v_first > v_after then v_first else v_second end;
    end if;
  end loop;
  -- Not reached: the loop ends with a return or a refusal.
  return null;
end;
$$;
comment on function trunkline_internal.cron_next(text, text, timestamptz) is 'Returns the first due time of a cron expression strictly after a moment, in a time zone.';
