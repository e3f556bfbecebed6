-- Wakes workers that sleep on queues in which jobs may wait at a gate.
create or replace function trunkline_internal.wake_gate(p_gate bigint)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queues text[] := array(select distinct g.queue from trunkline_internal.gate_queues as g where g.gate = p_gate);
begin
  -- A job that shares fairly waits elsewhere for it.
  if exists (select from trunkline_internal.limits as l where l.pool is not null) then
    v_queues := array(select distinct g.queue from trunkline_internal.gate_queues as g);
  end if;
  if cardinality(v_queues) > 0 then
    perform trunkline_internal.wake_sleepers(p_queues => v_queues);
  end if;
end;
$$;
comment on function trunkline_internal.wake_gate(bigint) is 'Wakes workers that sleep on queues in which jobs may wait at a gate.';
