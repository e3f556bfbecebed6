-- Notes the last gate that a claim took something of, for those that come after it: see begin_gate_turn.
create or replace function trunkline_internal.end_gate_turn(p_begin bigint, p_last bigint)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_steps constant bigint := 2147483648;
  v_begin bigint := (p_begin >> 33) + c_steps / 2;
  v_end bigint := ((p_last >> 33) + c_steps / 2 + 1) % c_steps;
  v_turn bigint := coalesce(pg_sequence_last_value('trunkline_internal.gate_turns'::regclass), 0);
  v_place bigint := v_turn >> 31;
begin
  -- Where nobody has begun since, the next begins at the very end of this one.
  if v_place = (v_begin + v_turn % c_steps) % c_steps then
    v_place := v_end;
  end if;
  perform setval('trunkline_internal.gate_turns', v_place << 31 | (v_end - v_begin + c_steps) % c_steps);
end;
$$;
comment on function trunkline_internal.end_gate_turn(bigint, bigint) is 'Notes the last gate that a claim took something of, for those that come after it: see begin_gate_turn.';
