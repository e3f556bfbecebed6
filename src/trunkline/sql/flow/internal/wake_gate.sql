-- Wakes workers that sleep on queues in which jobs may wait at a gate.
create or replace function trunkline_internal.wake_gate(p_gate bigint)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform trunkline_internal.wake_gates(p_gates => array[p_gate], p_queues => array[]::text[], p_slots => false, p_elsewhere => true);
end;
$$;
comment on function trunkline_internal.wake_gate(bigint) is 'Wakes workers that sleep on queues in which jobs may wait at a gate.';
