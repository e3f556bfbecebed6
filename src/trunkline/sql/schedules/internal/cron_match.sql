-- Returns the first local time, at or after a whole minute, that a cron expression allows; null if there is none within 50 years.
-- It ignores time zones; cron_next converts the result. It checks months, then days, then hours, then minutes, so that it
-- never steps through the minutes of a day that does not match. Fifty years, because 29 February falls on a given weekday
-- every 28 years, or 40 years around 2100.
create or replace function trunkline_internal.cron_match(p_fields trunkline_internal.cron_expression, p_from timestamp)
returns timestamp
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
  c_sunday constant date := date '1899-12-31';
  v_year integer := date_part('year', p_from)::integer;
  v_month integer := date_part('month', p_from)::integer;
  v_day integer := date_part('day', p_from)::integer;
  v_hour integer := date_part('hour', p_from)::integer;
  v_minute integer := date_part('minute', p_from)::integer;
  v_last_year integer := v_year + 50;
  v_days integer[] := p_fields.days;
  v_weekdays integer[] := p_fields.weekdays;
  v_hours integer[] := p_fields.hours;
  v_minutes integer[] := p_fields.minutes;
  v_both boolean := p_fields.day_starred or p_fields.weekday_starred;
  v_first date;
  v_length integer;
  v_first_weekday integer;
  v_last_workday integer;
  v_weekday integer;
  v_day_fits boolean;
  v_weekday_fits boolean;
begin
  while v_year <= v_last_year loop
    if v_month = any(p_fields.months) then
      v_first := make_date(v_year, v_month, 1);
      v_length := make_date(v_year + v_month / 12, v_month % 12 + 1, 1) - v_first;
      v_first_weekday := (v_first - c_sunday) % 7;
      v_last_workday := v_length - case (v_first_weekday + v_length - 1) % 7 when 0 then 2 when 6 then 1 else 0 end;
      while v_day <= v_length loop
        v_weekday := (v_first_weekday + v_day - 1) % 7;
        v_day_fits := v_day = any(v_days)
          or (p_fields.last_day and v_day = v_length)
          or (p_fields.last_workday and v_day = v_last_workday);
        v_weekday_fits := v_weekday = any(v_weekdays)
          or 100 + 10 * v_weekday + (v_day + 6) / 7 = any(v_weekdays)
          or (v_day + 7 > v_length and 100 + 10 * v_weekday = any(v_weekdays));
        -- Debian's rule: if both fields are restricted, a match of either is enough; if one is starred, both must match.
        if (v_day_fits and v_weekday_fits) or (not v_both and (v_day_fits or v_weekday_fits)) then
          while v_hour <= 23 loop
            if v_hour = any(v_hours) then
              while v_minute <= 59 loop
                if v_minute = any(v_minutes) then
                  return make_timestamp(v_year, v_month, v_day, v_hour, v_minute, 0);
                end if;
                v_minute := v_minute + 1;
              end loop;
            end if;
            v_hour := v_hour + 1;
            v_minute := 0;
          end loop;
        end if;
        v_day := v_day + 1;
        v_hour := 0;
        v_minute := 0;
      end loop;
    end if;
    v_year := v_year + v_month / 12;
    v_month := v_month % 12 + 1;
    v_day := 1;
    v_hour := 0;
    v_minute := 0;
  end loop;
  return null;
end;
$$;
comment on function trunkline_internal.cron_match(trunkline_internal.cron_expression, timestamp) is 'Returns the first local time, at or after a whole minute, that a cron expression allows; null if there is none within 50 years.';
