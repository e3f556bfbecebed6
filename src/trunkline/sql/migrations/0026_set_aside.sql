-- why: a lowered limit must not kill the jobs that wait for it: a job that no longer fits is set aside until it fits again
-- breaking: no

-- Apart from waiting, so that it costs nothing: claims and enqueues do not touch it while nothing is set aside.
create table trunkline_internal.set_aside (
  job_id uuid not null constraint set_aside_pkey primary key,
  gate bigint not null,
  limit_id integer not null,
  unit integer not null check (unit between 1 and 3),
  cost bigint not null,
  sequence bigint not null,
  since timestamptz not null,
  queue text not null,
  task text not null
);
comment on table trunkline_internal.set_aside is 'Jobs in state blocked that cost more than one of their limits ever gives at once; they are freed when it gives enough.';
comment on column trunkline_internal.set_aside.gate is 'The bucket that is too small, which need not be the one in whose lane the job waited.';
comment on column trunkline_internal.set_aside.limit_id is 'The limit that the job was enqueued under; one with the bucket''s own name takes precedence.';
comment on column trunkline_internal.set_aside.unit is 'What there is too little of, as its place in need: 1 requests, 2 tokens, 3 units.';
comment on column trunkline_internal.set_aside.sequence is 'Its place in the lane, which it returns to.';
create index set_aside_by_cost on trunkline_internal.set_aside (gate, unit, cost, sequence);
create index set_aside_by_age on trunkline_internal.set_aside (task, since);
create index set_aside_by_time on trunkline_internal.set_aside (since);
create index set_aside_by_queue on trunkline_internal.set_aside (queue);
alter table trunkline_internal.set_aside enable row level security, force row level security;
create policy owner_rows on trunkline_internal.set_aside to trunkline_owner using (true) with check (true);

delete from trunkline_internal.job_transitions where from_state = 'ready' and to_state = 'dead' and by_function = 'sweep_gates';
insert into trunkline_internal.job_transitions (from_state, to_state, by_function) values
  ('ready', 'blocked', 'claim'),
  ('ready', 'blocked', 'set_limit'),
  ('ready', 'blocked', 'sweep_gates'),
  ('blocked', 'ready', 'set_limit'),
  ('blocked', 'ready', 'sweep_gates'),
  ('blocked', 'dead', 'sweep_gates'),
  ('blocked', 'blocked', 'enqueue');

-- squawk-ignore ban-drop-function
drop function if exists trunkline_internal.bury_misfits(bigint[], integer[], timestamptz);
