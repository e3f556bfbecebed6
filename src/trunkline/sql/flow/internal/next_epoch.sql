-- Writes a changed state of a gate as its next epoch and deletes the last one. The caller holds the gate.
create or replace function trunkline_internal.next_epoch(p_gate bigint, p_state trunkline_internal.gate_states)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_next trunkline_internal.gate_states := p_state;
begin
  v_next.gate := p_gate;
  v_next.epoch := coalesce(p_state.epoch, 0) + 1;
  insert into trunkline_internal.gate_states select v_next.*;
  delete from trunkline_internal.gate_states as s where s.gate = p_gate and s.epoch = p_state.epoch;
end;
$$;
comment on function trunkline_internal.next_epoch(bigint, trunkline_internal.gate_states) is 'Writes a changed state of a gate as its next epoch and deletes the last one. The caller holds the gate.';
