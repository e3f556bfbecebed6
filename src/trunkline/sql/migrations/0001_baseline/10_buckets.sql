-- Limits with their keys filled in: which have jobs waiting, and what each has given out.

-- Not unique: an enqueue that sees no open row adds one and waits for nobody.
create table trunkline_internal.gate_queues (
  gate bigint not null,
  limit_id integer not null,
  queue text not null,
  closing boolean not null default false,
  sealed_at_xid xid8
) with (fillfactor = 70);
comment on table trunkline_internal.gate_queues is 'Which gates may have jobs waiting, in which queues. A gate is one limit with its keys filled in.';
comment on column trunkline_internal.gate_queues.gate is 'A hash of the name, so that the first job of a key has no row to make that others would wait for.';
comment on column trunkline_internal.gate_queues.closing is 'A claim found it empty: who sees that adds a row and does not rely on this one.';
comment on column trunkline_internal.gate_queues.sealed_at_xid is 'Transactions from this id on have seen that it is closing. Once all before it have ended and it is still empty, it goes.';
create index gate_queues_by_gate on trunkline_internal.gate_queues (gate, queue);
alter table trunkline_internal.gate_queues enable row level security, force row level security;
create policy owner_rows on trunkline_internal.gate_queues to trunkline_owner using (true) with check (true);

-- Not unique either, for the same reason.
create table trunkline_internal.gate_names (
  gate bigint not null,
  limit_id integer not null,
  name text not null check (name <> '' and octet_length(name) <= 400),
  seen_at timestamptz not null
);
comment on table trunkline_internal.gate_names is 'Names of gates, for people: the engine goes by their numbers.';
create index gate_names_by_gate on trunkline_internal.gate_names (gate);
create index gate_names_by_limit on trunkline_internal.gate_names (limit_id);
alter table trunkline_internal.gate_names enable row level security, force row level security;
create policy owner_rows on trunkline_internal.gate_names to trunkline_owner using (true) with check (true);

create table trunkline_internal.gate_states (
  gate bigint not null,
  epoch bigint not null,
  free_at timestamptz,
  reckoned_by timestamptz,
  holders uuid[],
  charged_at bigint[],
  charged_requests bigint[],
  charged_tokens bigint[],
  place jsonb,
  held_until timestamptz,
  held_reason text,
  spent bigint,
  spent_hour bigint,
  corrected_below xid8,
  refused bigint,
  refused_at timestamptz,
  started_at bigint[],
  started bigint[],
  served xid8,
  constraint gate_states_pkey primary key (gate, epoch)
);
comment on table trunkline_internal.gate_states is 'What each gate has given out: only the newest epoch counts. A change adds an epoch and deletes the one before, so that no old snapshot makes the newest hard to find.';
comment on column trunkline_internal.gate_states.free_at is 'When it may have room again, as far as time alone decides; null: now.';
comment on column trunkline_internal.gate_states.reckoned_by is 'When the limit was last changed that free_at was reckoned by: after another change it says nothing.';
comment on column trunkline_internal.gate_states.holders is 'Jobs and grants that were given a place. Those that still run hold it: the end of an attempt, however it comes, gives it back without a word.';
comment on column trunkline_internal.gate_states.charged_at is 'The last second of each span of time in which something was given out; older ones are put together by the minute.';
comment on column trunkline_internal.gate_states.place is 'From where its lanes are looked through, as in a claim''s position.';
comment on column trunkline_internal.gate_states.held_until is 'The provider said so: nothing before.';
comment on column trunkline_internal.gate_states.spent is 'What its quota has given out in the window as it was in spent_hour; another hour counts anew.';
comment on column trunkline_internal.gate_states.corrected_below is 'Corrections of transactions below this id are part of the charges.';
comment on column trunkline_internal.gate_states.refused is 'How often acquire was refused.';
comment on column trunkline_internal.gate_states.served is 'The last claim that gave it something, kept for keys of a pool: who waits longest goes first.';
comment on column trunkline_internal.gate_states.started_at is 'Minutes in which attempts were started, kept where there is a breaker.';
-- Random numbers: compressing them takes time and gains nothing.
alter table trunkline_internal.gate_states alter column holders set storage external;
alter table trunkline_internal.gate_states enable row level security, force row level security;
create policy owner_rows on trunkline_internal.gate_states to trunkline_owner using (true) with check (true);

-- Unlogged: logging would give a claim a transaction id before its first scan. A crash loses only whose turn it was.
create unlogged sequence trunkline_internal.gate_turns as bigint minvalue 0 start 0;
comment on sequence trunkline_internal.gate_turns is 'From where the next claim looks at gates, how far the last one went and of how many it took: see begin_gate_turn.';

-- Append-only: a settlement waits for nobody. The next transaction that holds the gate counts the rows in.
create table trunkline_internal.gate_corrections (
  gate bigint not null,
  xid xid8 not null default pg_current_xact_id(),
  at bigint not null,
  requests bigint not null,
  tokens bigint not null,
  units bigint not null,
  holders uuid[]
);
comment on table trunkline_internal.gate_corrections is 'What was charged without holding the gate, and what turned out other than charged: differences, for the second that was charged.';
comment on column trunkline_internal.gate_corrections.holders is 'Jobs that were given a place, as in gate_states.';
alter table trunkline_internal.gate_corrections alter column holders set storage external;
create index gate_corrections_by_gate on trunkline_internal.gate_corrections (gate, xid);
alter table trunkline_internal.gate_corrections enable row level security, force row level security;
create policy owner_rows on trunkline_internal.gate_corrections to trunkline_owner using (true) with check (true);

create type trunkline_internal.gate_charge as (
  gate bigint,
  limit_id integer,
  requests bigint,
  tokens bigint,
  units bigint,
  holders uuid[],
  starts integer
);
comment on type trunkline_internal.gate_charge is 'What is to be charged to a gate: sums, who holds a slot of it from now on, and how many of them are attempts that start.';

create type trunkline_internal.gate_left as (
  gate bigint,
  requests bigint,
  tokens bigint,
  units bigint,
  low_units bigint,
  slots bigint,
  quota_part integer,
  low_below integer,
  living uuid[]
);
comment on type trunkline_internal.gate_left is 'What a gate has left for a claim that holds it, as gate_room has it; null: no end of it. Who still holds a slot of it, where that had to be known.';

-- Parallel lists: a list of numbers costs a fraction of a list of rows.
create type trunkline_internal.found_jobs as (
  tids tid[],
  jobs uuid[],
  places bigint[],
  sequences bigint[],
  keyed uuid[],
  first_day date,
  last_day date,
  held boolean,
  shares boolean,
  others integer,
  charges trunkline_internal.gate_charge[],
  rooms trunkline_internal.gate_left[]
);
comment on type trunkline_internal.found_jobs is 'Jobs that a claim has locked: where they are, and the places of their queues and lanes in the claim; which of them have a unique key; between which days their payloads are kept apart; whether the claim holds the gates of all of them, or seems to be able to share them; how many are not limited; what the limited ones take of their gates, in the order of these, where that is known; what the gates had left when they were looked at.';
