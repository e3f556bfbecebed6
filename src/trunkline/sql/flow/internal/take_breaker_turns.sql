-- Takes turns at counting the failures of gates until the transaction ends; tells which of them it has.
-- Who may not wait, as recovery may not, gets those that are free. 256 turns for all gates, taken in order: two gates
-- that share one only wait for each other, and no batch fills the server's table of locks.
create or replace function trunkline_internal.take_breaker_turns(p_gates bigint[], p_wait boolean)
returns bigint[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_turns constant integer := 1953653362;
  v_had integer[] := array[]::integer[];
  v_turn integer;
begin
  for v_turn in
    select distinct hashint8(g.gate) & 255 as turn from unnest(p_gates) as g (gate) order by turn
  loop
    if p_wait then
      perform pg_advisory_xact_lock(c_turns, v_turn);
    elsif not pg_try_advisory_xact_lock(c_turns, v_turn) then
      continue;
    end if;
    v_had := v_had || v_turn;
  end loop;
  return array(select g.gate from unnest(p_gates) as g (gate) where hashint8(g.gate) & 255 = any(v_had));
end;
$$;
comment on function trunkline_internal.take_breaker_turns(bigint[], boolean) is 'Takes turns at counting the failures of gates until the transaction ends; tells which of them it has.';
