-- Parses a cron expression into the numbers that each field allows; refuses one that is not valid or never due.
-- Five fields (minute hour day month weekday) with lists, ranges, steps, *, names of months and
-- weekdays, L and LW in the day, n#k and nL in the weekday; or an alias such as @daily.
create or replace function trunkline_internal.cron_fields(p_cron text)
returns trunkline_internal.cron_expression
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
  c_longest constant integer := 1000;
  v_parts text[];
  v_days integer[];
  v_weekdays integer[];
  v_result trunkline_internal.cron_expression;
begin
  -- In the C collation upper() changes only ASCII letters; other collations may treat i differently.
  v_parts := array_remove(
    string_to_array(translate(upper(left(p_cron, c_longest) collate "C"), E'\t\n\r\f\x0B', '     '), ' '), ''
  );
  if cardinality(v_parts) = 1 and v_parts[1] like '@%' then
    v_parts := case v_parts[1]
      when '@YEARLY' then '{0,0,1,1,*}'
      when '@ANNUALLY' then '{0,0,1,1,*}'
      when '@MONTHLY' then '{0,0,1,*,*}'
      when '@WEEKLY' then '{0,0,*,*,0}'
      when '@DAILY' then '{0,0,*,*,*}'
      when '@MIDNIGHT' then '{0,0,*,*,*}'
      when '@HOURLY' then '{0,*,*,*,*}'
    end::text[];
    if v_parts is null then
      perform trunkline_internal.refuse(
        p_name => 'invalid_cron',
        p_detail => jsonb_build_object(
          'cron', left(p_cron, c_longest), 'field', 'alias', 'value', left(p_cron, c_longest), 'reason', 'not understood'
        )
      );
    end if;
  end if;
  if p_cron is null or length(p_cron) > c_longest or cardinality(v_parts) <> 5 then
    perform trunkline_internal.refuse(
      p_name => 'invalid_cron',
      p_detail => jsonb_build_object(
        'cron', left(p_cron, c_longest), 'field', 'expression',
        'value', case when length(p_cron) > c_longest then length(p_cron) else cardinality(v_parts) end,
        'reason', case
          when p_cron is null then 'missing'
          when length(p_cron) > c_longest then 'longer than 1000 characters'
          else 'wrong number of fields'
        end
      )
    );
  end if;

  v_result.minutes := trunkline_internal.cron_field(p_cron => p_cron, p_field => 'minute', p_value => v_parts[1]);
  v_result.hours := trunkline_internal.cron_field(p_cron => p_cron, p_field => 'hour', p_value => v_parts[2]);
  v_days := trunkline_internal.cron_field(p_cron => p_cron, p_field => 'day', p_value => v_parts[3]);
  v_result.months := trunkline_internal.cron_field(p_cron => p_cron, p_field => 'month', p_value => v_parts[4]);
  v_weekdays := trunkline_internal.cron_field(p_cron => p_cron, p_field => 'weekday', p_value => v_parts[5]);
  v_result.days := v_days;
  v_result.last_day := -1 = any(v_days);
  v_result.last_workday := -2 = any(v_days);
  v_result.weekdays := v_weekdays;
  v_result.day_starred := v_parts[3] like '*%';
  v_result.weekday_starred := v_parts[5] like '*%';
  v_result.minute_starred := v_parts[1] like '*%';
  v_result.hour_starred := v_parts[2] like '*%';

  if (v_result.day_starred or v_result.weekday_starred)
    and 29 < all(v_days)
    and not v_result.months && '{1,3,5,7,8,10,12}'
    and (31 = all(v_days) or not v_result.months && '{4,6,9,11}')
  then
    perform trunkline_internal.refuse(
      p_name => 'invalid_cron',
      p_detail => jsonb_build_object('cron', p_cron, 'field', 'day', 'value', v_parts[3], 'reason', 'never due')
    );
  end if;
  return v_result;
end;
$$;
comment on function trunkline_internal.cron_fields(text) is 'Parses a cron expression into the numbers that each field allows; refuses one that is not valid or never due.';
