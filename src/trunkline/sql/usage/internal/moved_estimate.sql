-- Returns the new estimate: the actual value if there was none; a 0.9/0.1 moving average if this call was sampled; otherwise the old value.
create or replace function trunkline_internal.moved_estimate(p_old bigint, p_actual bigint, p_is_drawn boolean)
returns bigint
language sql
immutable
parallel safe
as $$
  select case
    when p_actual = 0 then p_old
    when p_old = 0 then p_actual
    when p_is_drawn then pg_catalog.round(0.9 * p_old + 0.1 * p_actual)::bigint
    else p_old
  end
$$;
comment on function trunkline_internal.moved_estimate(bigint, bigint, boolean) is 'Returns the new estimate: the actual value if there was none; a 0.9/0.1 moving average if this call was sampled; otherwise the old value.';
