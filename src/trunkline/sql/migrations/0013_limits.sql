-- why: what a provider allows is one truth for the whole fleet, so it is kept and decided where the jobs are
-- breaking: no

create table trunkline_internal.limits (
  limit_id integer generated always as identity primary key,
  name text not null constraint limits_name_key unique check (name <> '' and octet_length(name) <= 200),
  gate bigint not null generated always as (hashtextextended(name, 0)) stored constraint limits_gate_key unique,
  requests_per_minute bigint check (requests_per_minute >= 0),
  requests_per_hour bigint check (requests_per_hour >= 0),
  tokens_per_minute bigint check (tokens_per_minute >= 0),
  tokens_per_hour bigint check (tokens_per_hour >= 0),
  concurrency integer check (concurrency >= 0),
  status text not null default 'active' check (status in ('active', 'maintenance', 'disabled')),
  reason text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  updated_by text not null
);
comment on table trunkline_internal.limits is 'What a provider allows. A name with {keys} is a limit of its own for each value of them; what is null is not limited.';
comment on sequence trunkline_internal.limits_limit_id_seq is 'Numbers of limits, as jobs carry them.';
alter table trunkline_internal.limits enable row level security, force row level security;
create policy owner_rows on trunkline_internal.limits to trunkline_owner using (true) with check (true);

-- Not unique: who enqueues and sees no open row adds one, and waits for nobody.
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
  constraint gate_states_pkey primary key (gate, epoch)
);
comment on table trunkline_internal.gate_states is 'What each gate has given out: only the newest epoch counts. A change adds an epoch and deletes the one before, so that no old snapshot makes the newest hard to find.';
comment on column trunkline_internal.gate_states.free_at is 'When it may have room again, as far as time alone decides; null: now.';
comment on column trunkline_internal.gate_states.reckoned_by is 'When the limit was last changed that free_at was reckoned by: after another change it says nothing.';
comment on column trunkline_internal.gate_states.holders is 'Jobs and grants that were given a place. Those that still run hold it: the end of an attempt, however it comes, gives it back without a word.';
comment on column trunkline_internal.gate_states.charged_at is 'The last second of each span of time in which something was given out; older ones are put together by the minute.';
comment on column trunkline_internal.gate_states.place is 'From where its lanes are looked through, as in a claim''s position.';
alter table trunkline_internal.gate_states enable row level security, force row level security;
create policy owner_rows on trunkline_internal.gate_states to trunkline_owner using (true) with check (true);

-- {requests, tokens, limit, gate, limit, gate ...}: numbers alone, since every limited job carries it from table to table.
alter table trunkline_internal.waiting
  add column gate bigint,
  add column need bigint[];
alter table trunkline_internal.running add column need bigint[];
alter table trunkline_internal.dead add column need bigint[];
comment on column trunkline_internal.waiting.need is 'What it takes of its limits: requests, tokens, then limit and gate of each. Null: not limited.';
comment on column trunkline_internal.waiting.gate is 'The gate in whose lane it waits: the first of its need, or the one that had no room last.';

-- Limited jobs are in an index of their own: a hundred thousand of them behind a spent limit lie in nobody's way.
-- squawk-ignore require-concurrent-index-deletion
drop index trunkline_internal.waiting_ready;
-- squawk-ignore require-concurrent-index-creation
create index waiting_ready on trunkline_internal.waiting (queue, lane, sequence) where state = 'ready' and gate is null;
-- squawk-ignore require-concurrent-index-creation
create index waiting_gated on trunkline_internal.waiting (gate, queue, lane, sequence) where state = 'ready' and gate is not null;

alter table trunkline_internal.tasks
  add column limits text[],
  add column cost jsonb;
comment on column trunkline_internal.tasks.limits is 'Names of the limits its jobs take from, with {keys} to be filled in from the payload; {tenant} is the tenant.';
comment on column trunkline_internal.tasks.cost is 'What a job takes that does not say so itself: requests (1) and tokens (0).';

insert into trunkline_internal.duties (duty, every, description) values
  ('sweep_gates', '5 seconds', 'Closes gates at which nobody waits, and forgets what no window sees any more.');

create type trunkline_internal.gated_job as (
  tid tid,
  job_id uuid,
  place bigint,
  sequence bigint,
  unique_key text,
  payload_day date,
  need bigint[]
);
comment on type trunkline_internal.gated_job is 'A limited job that a claim has locked and that its limits have room for; place is that of its queue and lane in the claim.';

-- They get more arguments, which create or replace cannot add.
-- squawk-ignore-file ban-drop-function
drop function if exists trunkline.enqueue(text, jsonb, text, integer, timestamptz, interval, text, text, text, text, integer, text[]);
drop function if exists trunkline.register_task(
  text, text, interval, interval, integer, jsonb, boolean, integer, text, integer, boolean, boolean, boolean, text
);
drop function if exists trunkline_internal.store_task(
  text, text, interval, interval, integer, jsonb, boolean, integer, text, integer, boolean, boolean, boolean, text, timestamptz
);
drop function if exists trunkline_internal.check_policy(
  text, text, interval, interval, integer, jsonb, text, integer, integer, text
);
