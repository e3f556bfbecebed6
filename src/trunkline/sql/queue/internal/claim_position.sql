-- Reads the position that a claim was given; one made for other queues, tasks or tenants counts as none.
-- Takes the snapshot before the scan: the scan sees every transaction that the snapshot calls ended.
create or replace function trunkline_internal.claim_position(p_position jsonb, p_queues text[], p_tasks text[], p_scope text)
returns trunkline_internal.kept_position
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_position trunkline_internal.kept_position;
begin
  v_position.snapshot := pg_current_snapshot();
  v_position.behind := p_position ? 'behind';
  v_position.kept := not v_position.behind;
  -- A transaction that had an id before may have drawn numbers below those it scans: its position stays where it is.
  v_position.moves := v_position.kept and pg_current_xact_id_if_assigned() is null;
  v_position.value := case when v_position.behind then p_position -> 'behind' else p_position end;
  -- Not md5, which servers in FIPS mode refuse.
  v_position.made_for := hashtextextended(jsonb_build_array(p_queues, p_tasks, p_scope)::text, 0)::text;
  if v_position.value ->> 'for' is distinct from v_position.made_for
    or not trunkline_internal.position_is_sound(p_position => v_position.value)
  then
    v_position.value := '{}';
  end if;
  return v_position;
end;
$$;
comment on function trunkline_internal.claim_position(jsonb, text[], text[], text) is 'Reads the position that a claim was given; one made for other queues, tasks or tenants counts as none.';
