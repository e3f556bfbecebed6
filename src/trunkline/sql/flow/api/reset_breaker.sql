-- Closes a breaker that is open or half-open, whatever its probe says; tells how many it closed.
-- p_name is that of a limit or of one of its keys filled in; a limit's name with keys in braces means all of them.
-- Locks: the gates, in order, then rows of breakers; claims pass a gate by meanwhile.
create or replace function trunkline.reset_breaker(p_name text)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_closed bigint[];
  v_gates bigint[];
  v_now timestamptz := trunkline.clock();
begin
  perform trunkline_internal.require_read_committed();
  v_gates := array(
    select g.gate
    from trunkline_internal.breaker_gates(p_name => p_name) as g
    join trunkline_internal.breakers as b on b.gate = g.gate and b.state <> 'closed'
    order by hashint8(g.gate)
  );
  perform trunkline_internal.hold_gate(p_gate => g.gate) from unnest(v_gates) as g (gate);
  with closed as (
    update trunkline_internal.breakers as b
    set
      state = 'closed',
      probe_at = null,
      probe_job = null,
      closed_at = v_now,
      changed_at = v_now,
      changed_by = session_user,
      reason = 'reset'
    from (
      select b.gate
      from trunkline_internal.breakers as b
      where b.gate = any(v_gates) and b.state <> 'closed'
      order by b.gate
      for update
    ) as p
    where b.gate = p.gate
    returning b.gate
  )
  select array_agg(c.gate) into v_closed from closed as c;
  if v_closed is null then
    return 0;
  end if;
  -- What led to the opening is over, attempts as well as failures.
  update trunkline_internal.gate_states as s
  set started_at = null, started = null
  where s.gate = any(v_closed);
  perform trunkline_internal.wake_gates(p_gates => v_closed, p_queues => array[]::text[], p_slots => false, p_elsewhere => true);
  return cardinality(v_closed);
end;
$$;
comment on function trunkline.reset_breaker(text) is 'Closes a breaker that is open or half-open, whatever its probe says; tells how many it closed.';
