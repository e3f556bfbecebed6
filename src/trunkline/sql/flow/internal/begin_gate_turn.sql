-- Gives the number after which a claim looks at gates: where the one before it ends, or is expected to end.
-- Gates are a ring, by their numbers, and claims go round it one after the other, so that each is looked at again when
-- most of what it gave out has ended; from random places, half of the slots that claims met were taken. Two that begin
-- at once may get the same place: then they pass by what the other holds. The sequence has the place, in as many
-- steps as 31 bits have, and below it how many of them the last claim took.
create or replace function trunkline_internal.begin_gate_turn()
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_steps constant bigint := 2147483648;
  v_turn bigint := coalesce(pg_sequence_last_value('trunkline_internal.gate_turns'::regclass), 0);
begin
  perform setval('trunkline_internal.gate_turns', (((v_turn >> 31) + v_turn % c_steps) % c_steps) << 31 | v_turn % c_steps);
  return ((v_turn >> 31) - c_steps / 2) << 33;
end;
$$;
comment on function trunkline_internal.begin_gate_turn() is 'Gives the number after which a claim looks at gates: where the one before it ends, or is expected to end.';
