-- Takes gates until the transaction ends, or a place among those who share them; tells whether it got them all.
-- Whoever has one has it until its end, so this waits, a little: to give up at once would leave a worker idle, and to
-- wait for as long as it takes would have all of them stand still behind one long transaction.
create or replace function trunkline_internal.wait_for_gates(p_charges trunkline_internal.gate_charge[], p_shared boolean)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_looks constant integer := 40;
  c_pause constant double precision := '0.001'::double precision;
  v_charge trunkline_internal.gate_charge;
  v_looks integer := 0;
begin
  foreach v_charge in array p_charges loop
    while not case
      when p_shared then trunkline_internal.try_share(p_gate => v_charge.gate)
      else trunkline_internal.try_gate(p_gate => v_charge.gate)
    end loop
      v_looks := v_looks + 1;
      if v_looks > c_looks then
        return false;
      end if;
      perform pg_sleep(c_pause);
    end loop;
  end loop;
  return true;
end;
$$;
comment on function trunkline_internal.wait_for_gates(trunkline_internal.gate_charge[], boolean) is 'Takes gates until the transaction ends, or a place among those who share them; tells whether it got them all.';
