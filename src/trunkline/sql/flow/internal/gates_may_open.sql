-- Tells whether a look at the gates of these queues may find a job: not where there are few and all of them are known to be spent or held.
-- Most of such a look is the start of its statements, which other work would pay for at each claim.
create or replace function trunkline_internal.gates_may_open(p_queues text[], p_now timestamptz)
returns boolean
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_few constant integer := 8;
  v_gate record;
  v_looked integer := 0;
  v_state record;
begin
  for v_gate in select g.gate, g.limit_id from trunkline_internal.gate_queues as g where g.queue = any(p_queues) limit c_few loop
    select s.free_at, s.held_until, s.reckoned_by, s.corrected_below
    into v_state
    from trunkline_internal.gate_states as s
    where s.gate = v_gate.gate
    order by s.epoch desc
    limit 1;
    if not found or (v_state.held_until is null or v_state.held_until <= p_now) and (
      v_state.free_at is null
      or v_state.free_at <= p_now
      or exists (
        select
        from trunkline_internal.limits as l
        where l.limit_id = trunkline_internal.limit_of(p_gate => v_gate.gate, p_limit => v_gate.limit_id)
          and l.updated_at > v_state.reckoned_by
      )
      or exists (
        select
        from trunkline_internal.gate_corrections as c
        where c.gate = v_gate.gate and c.xid >= coalesce(v_state.corrected_below, '0'::xid8)
      )
    ) then
      return true;
    end if;
    v_looked := v_looked + 1;
  end loop;
  return v_looked = c_few;
end;
$$;
comment on function trunkline_internal.gates_may_open(text[], timestamptz) is 'Tells whether a look at the gates of these queues may find a job: not where there are few and all of them are known to be spent or held.';
