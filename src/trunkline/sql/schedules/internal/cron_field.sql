-- Parses one field of a cron expression into the numbers that it allows; refuses a field that is not valid.
-- Called by cron_fields. Values other than plain numbers have codes. In a day field -1 is L (last day) and -2 is LW (last
-- day from Monday to Friday). In a weekday field 100 + 10 x weekday + n is the n-th such weekday of a month, and
-- 100 + 10 x weekday is the last one. Sunday is 0, even if written as 7.
create or replace function trunkline_internal.cron_field(p_cron text, p_field text, p_value text)
returns integer[]
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
  c_numbers constant integer[] := '{
    0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,
    30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59}'::integer[];
  v_first integer := case when p_field in ('day', 'month') then 1 else 0 end;
  v_last integer;
  v_names text[];
  v_term text;
  v_base text;
  v_cut integer;
  v_from integer;
  v_to integer;
  v_step integer;
  v_result integer[] := '{}'::integer[];
begin
  case p_field
    when 'minute' then v_last := 59;
    when 'hour' then v_last := 23;
    when 'day' then v_last := 31;
    when 'month' then
      v_last := 12;
      v_names := '{JAN,FEB,MAR,APR,MAY,JUN,JUL,AUG,SEP,OCT,NOV,DEC}'::text[];
    else
      v_last := 7;
      v_names := '{SUN,MON,TUE,WED,THU,FRI,SAT}'::text[];
  end case;
  foreach v_term in array string_to_array(p_value, ',') loop
    if v_term = '*' then
      v_result := v_result || c_numbers[v_first + 1 : v_last + 1];
      continue;
    end if;
    -- Split with strpos: a regular expression with captures takes three times as long.
    v_step := 1;
    v_base := v_term;
    v_cut := strpos(v_term, '/');
    if v_cut > 0 then
      v_base := left(v_term, v_cut - 1);
      v_step := case
        when substr(v_term, v_cut + 1) ~ '^0*[0-9]{1,2}$' then substr(v_term, v_cut + 1)::integer
        -- A step longer than any field selects the first number only.
        when substr(v_term, v_cut + 1) ~ '^[0-9]+$' then 100
        else 0
      end;
    end if;
    if p_field = 'day' and v_base in ('L', 'LW') and v_step > 0 then
      v_result := v_result || case v_base when 'L' then -1 else -2 end;
      continue;
    end if;
    if p_field = 'weekday' and v_term ~ '^([0-9]+L|[0-9A-Z]+#0*[1-5])$' then
      v_from := trunkline_internal.cron_value(
        p_text => split_part(rtrim(v_term, 'L'), '#', 1), p_names => v_names, p_first => v_first
      );
      if v_from between v_first and v_last then
        v_result := v_result || 100 + 10 * (v_from % 7) + case when v_term like '%L' then 0 else right(v_term, 1)::integer end;
        continue;
      end if;
    end if;
    v_cut := strpos(v_base, '-');
    if v_base = '*' then
      v_from := v_first;
      v_to := v_last;
    elsif v_cut > 0 then
      v_from := trunkline_internal.cron_value(p_text => left(v_base, v_cut - 1), p_names => v_names, p_first => v_first);
      v_to := trunkline_internal.cron_value(p_text => substr(v_base, v_cut + 1), p_names => v_names, p_first => v_first);
    else
      v_from := trunkline_internal.cron_value(p_text => v_base, p_names => v_names, p_first => v_first);
      v_to := v_from;
    end if;
    -- As in cronsim, a step after a single number runs to the end of the field, even if the number is written as a range.
    if v_from = v_to and v_from <= v_last and v_base <> v_term then
      v_to := v_last;
    end if;
    if v_from is null or v_to is null or v_from < v_first or v_to > v_last or v_to < v_from or v_step = 0 then
      perform trunkline_internal.refuse(
        p_name => 'invalid_cron',
        p_detail => jsonb_build_object('cron', p_cron, 'field', p_field, 'value', v_term, 'reason', 'not understood')
      );
    end if;
    if v_step = 1 then
      v_result := v_result || c_numbers[v_from + 1 : v_to + 1];
    else
      for v_number in v_from .. v_to by v_step loop
        v_result := v_result || v_number;
      end loop;
    end if;
  end loop;
  if p_field = 'weekday' and 7 = any(v_result) then
    v_result := array_replace(v_result, 7, 0);
  end if;
  return v_result;
end;
$$;
comment on function trunkline_internal.cron_field(text, text, text) is 'Parses one field of a cron expression into the numbers that it allows; refuses a field that is not valid.';
