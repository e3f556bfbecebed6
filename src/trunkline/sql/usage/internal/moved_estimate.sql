-- Gives an estimate after a call: the actual where there was none, nine tenths of the old and one of the actual where the draw was its, else the old.
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
comment on function trunkline_internal.moved_estimate(bigint, bigint, boolean) is 'Gives an estimate after a call: the actual where there was none, nine tenths of the old and one of the actual where the draw was its, else the old.';
