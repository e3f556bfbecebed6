-- Returns what is wrong with parts of a limit, as "argument must be"; null if they are valid.
create or replace function trunkline_internal.check_limit_parts(p_parts jsonb)
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_numbers constant jsonb := jsonb_build_object(
    'requests_per_minute', array[0, 1000000000000], 'requests_per_hour', array[0, 1000000000000],
    'tokens_per_minute', array[0, 1000000000000], 'tokens_per_hour', array[0, 1000000000000],
    'concurrency', array[0, 100000], 'quota', array[0, 1000000000000000], 'quota_low_below', array[-50, 50],
    'breaker_failures', array[1, 1000000], 'depth_limit', array[0, 1000000000],
    'weight', array[1, 1000], 'share_cap', array[1, 100000]
  );
  -- The smallest allowed values: with a buffer of zero there would be no quota.
  c_shares constant jsonb := jsonb_build_object(
    'quota_buffer', 0.0001, 'quota_low_share', 0, 'breaker_share', 0, 'backpressure_threshold', 0.01
  );
  c_seconds constant jsonb := jsonb_build_object(
    'quota_window', array[3600, 31622400], 'breaker_window', array[60, 86400], 'breaker_probe_after', array[1, 86400],
    'backpressure_delay', array[0, 86400]
  );
  c_others constant text[] := array['quota_unit', 'quota_period', 'quota_refuses', 'depth_refuses'];
  v_allowed jsonb;
  v_number numeric;
  v_part record;
begin
  if jsonb_typeof(p_parts) <> 'object' or pg_column_size(p_parts) > 10000 then
    return 'an object with parts of a limit, of at most 10000 bytes';
  end if;
  for v_part in select p.key, p.value, p.value #>> '{}' as text from jsonb_each(p_parts) as p loop
    continue when jsonb_typeof(v_part.value) = 'null' and v_part.key not in ('quota_refuses', 'depth_refuses');
    if c_numbers ? v_part.key or c_shares ? v_part.key then
      if jsonb_typeof(v_part.value) <> 'number' then
        return v_part.key || ' as a number or null';
      end if;
      v_number := v_part.text::numeric;
      v_allowed := c_numbers -> v_part.key;
      if v_allowed is not null and (
        v_number % 1 <> 0 or v_number not between (v_allowed ->> 0)::numeric and (v_allowed ->> 1)::numeric
      ) then
        return format('%s as a whole number from %s to %s, or null', v_part.key, v_allowed ->> 0, v_allowed ->> 1);
      elsif c_shares ? v_part.key and v_number not between (c_shares ->> v_part.key)::numeric and 1 then
        return format('%s as a share from %s to 1, or null', v_part.key, c_shares ->> v_part.key);
      end if;
    elsif c_seconds ? v_part.key then
      v_allowed := c_seconds -> v_part.key;
      if jsonb_typeof(v_part.value) <> 'string'
        or extract(epoch from v_part.text::interval) not between (v_allowed ->> 0)::numeric and (v_allowed ->> 1)::numeric
      then
        return format('%s as an interval of %s to %s seconds, or null', v_part.key, v_allowed ->> 0, v_allowed ->> 1);
      end if;
    elsif v_part.key = 'quota_unit' then
      if jsonb_typeof(v_part.value) <> 'string' or v_part.text = '' or length(v_part.text) > 50 then
        return 'quota_unit as a word of at most 50 characters: requests, tokens, or what units mean';
      end if;
    elsif v_part.key = 'quota_period' then
      if v_part.text not in ('day', 'month') then
        return 'quota_period as day or month, or null';
      end if;
    elsif v_part.key in ('quota_refuses', 'depth_refuses') then
      if jsonb_typeof(v_part.value) <> 'boolean' then
        return v_part.key || ' as true or false';
      end if;
    else
      return 'an object with ' || (
        select string_agg(k.key, ', ' order by k.key)
        from (
          select jsonb_object_keys(c_numbers || c_shares || c_seconds) as key union all select unnest(c_others)
        ) as k
      );
    end if;
  end loop;
  if p_parts ->> 'quota_window' is not null and p_parts ->> 'quota_period' is not null then
    return 'quota_window or quota_period, not both';
  end if;
  return null;
exception
  when data_exception then
    return format('%s as an interval such as ''30 days'', or null', v_part.key);
end;
$$;
comment on function trunkline_internal.check_limit_parts(jsonb) is 'Returns what is wrong with parts of a limit, as "argument must be"; null if they are valid.';
