-- why: claims looked at the limits of keys from a random one on, and half of those that they met had just been given out; enqueue paid for the indexes of limited jobs
-- breaking: no

-- Not logged: that would give a claim an id before it looks. Nothing is lost with it but whose turn it was.
create unlogged sequence trunkline_internal.gate_turns as bigint minvalue 0 start 0;
comment on sequence trunkline_internal.gate_turns is 'From where the next claim looks at gates, how far the last one went and of how many it took: see begin_gate_turn.';

-- Conditions are tried in this order at every insert: whether there is a gate costs nothing to ask, what state it is a
-- comparison of texts.
-- squawk-ignore-file require-concurrent-index-creation, require-concurrent-index-deletion
drop index trunkline_internal.waiting_ready;
create index waiting_ready on trunkline_internal.waiting (queue, lane, sequence) where gate is null and state = 'ready';
drop index trunkline_internal.waiting_gated;
create index waiting_gated on trunkline_internal.waiting (gate, queue, lane, sequence) where gate is not null and state = 'ready';
drop index trunkline_internal.waiting_gated_later;
create index waiting_gated_later on trunkline_internal.waiting (gate) where gate is not null and state = 'scheduled';
