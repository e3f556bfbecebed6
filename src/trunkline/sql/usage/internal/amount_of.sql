-- Returns the requests, tokens or units out of three amounts, as the unit says; a quota in any other unit counts units.
create or replace function trunkline_internal.amount_of(p_unit text, p_requests bigint, p_tokens bigint, p_units bigint)
returns bigint
language sql
immutable
parallel safe
as $$
  select case p_unit when 'requests' then p_requests when 'tokens' then p_tokens else p_units end
$$;
comment on function trunkline_internal.amount_of(text, bigint, bigint, bigint) is 'Returns the requests, tokens or units out of three amounts, as the unit says; a quota in any other unit counts units.';
