-- why: claims looked at the limits of keys from a random one on, and half of those that they met had just been given out
-- breaking: no

-- Not logged: that would give a claim an id before it looks. Nothing is lost with it but whose turn it was.
create unlogged sequence trunkline_internal.gate_turns as bigint minvalue 0 start 0;
comment on sequence trunkline_internal.gate_turns is 'From where the next claim looks at gates, how far the last one went and of how many it took: see begin_gate_turn.';
