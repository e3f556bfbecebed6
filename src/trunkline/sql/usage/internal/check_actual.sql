-- Refuses an invalid account of a call: requests, tokens, units and bytes are whole numbers, cost is a number, none is negative.
create or replace function trunkline_internal.check_actual(p_actual jsonb)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_actual is null or (
    pg_column_size(p_actual) <= 10000
    and jsonb_typeof(p_actual) = 'object'
    and trunkline_internal.is_cost(p_cost => jsonb_strip_nulls(p_actual - array['cost', 'bytes']))
    and trunkline_internal.is_cost(p_cost => jsonb_strip_nulls(jsonb_build_object('units', p_actual -> 'bytes')))
    and case jsonb_typeof(coalesce(p_actual -> 'cost', 'null'::jsonb))
      when 'null' then true
      when 'number' then (p_actual ->> 'cost')::numeric between 0 and 1000000000000
      else false
    end
  ) then
    return;
  end if;
  perform trunkline_internal.refuse(
    p_name => 'invalid_cost',
    p_detail => jsonb_build_object(
      'cost', p_actual, 'must_be', 'requests, tokens, units and bytes as whole numbers and cost as a number, from 0 to 10^12'
    )
  );
end;
$$;
comment on function trunkline_internal.check_actual(jsonb) is 'Refuses an invalid account of a call: requests, tokens, units and bytes are whole numbers, cost is a number, none is negative.';
