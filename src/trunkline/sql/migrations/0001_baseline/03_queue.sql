-- Tasks, queues, lanes and the legal transitions of jobs.

create table trunkline_internal.tasks (
  task text primary key check (task <> '' and length(task) <= 200),
  queue text not null default 'default' check (queue <> '' and length(queue) <= 200),
  profile text not null default 'default' check (profile <> '' and octet_length(profile) <= 200),
  lease interval check (lease between interval '1 second' and interval '365 days'),
  hard_limit interval check (hard_limit > interval '0' and hard_limit <= interval '3650 days'),
  max_attempts smallint not null default 4 check (max_attempts between 1 and 1000),
  priority smallint not null default 0 check (priority between -50 and 49),
  backoff_base interval not null default interval '10 seconds' check (backoff_base >= interval '0'),
  backoff_factor double precision not null default 2 check (backoff_factor between 1 and 100),
  backoff_cap interval not null default interval '1 hour' check (backoff_cap >= interval '0'),
  backoff_jitter double precision not null default 0.2 check (backoff_jitter between 0 and 1),
  lost_backoff boolean not null default false,
  reclaim_on_worker_death boolean not null default true,
  crash_limit smallint check (crash_limit between 1 and 1000),
  unique_until text not null default 'end' check (unique_until in ('claim', 'end')),
  dead_when_deferred boolean not null default false,
  audit boolean not null default false,
  registered_at timestamptz not null,
  updated_at timestamptz not null,
  limits text[],
  cost jsonb,
  alias_of text
);
comment on table trunkline_internal.tasks is 'Tasks and their policies: leases, attempts, back-off and audit are data, not code.';
comment on column trunkline_internal.tasks.lease is 'Null: the setting lease.';
comment on column trunkline_internal.tasks.hard_limit is 'Null: four times the lease.';
comment on column trunkline_internal.tasks.lost_backoff is 'Whether a lost attempt waits by the back-off instead of the reclaim jitter.';
comment on column trunkline_internal.tasks.unique_until is 'Whether a unique key is free again when the job is claimed or when it ends.';
comment on column trunkline_internal.tasks.limits is 'Names of the limits its jobs take from, with {keys} to be filled in from the payload; {tenant} is the tenant.';
comment on column trunkline_internal.tasks.cost is 'What a job takes that does not say so itself: requests (1) and tokens (0).';
comment on column trunkline_internal.tasks.alias_of is 'The task whose handler runs jobs of this old name. Null: not an alias.';
alter table trunkline_internal.tasks enable row level security, force row level security;
create policy owner_rows on trunkline_internal.tasks to trunkline_owner using (true) with check (true);

create table trunkline_internal.queues (
  queue text primary key check (queue <> '' and length(queue) <= 200),
  paused boolean not null default false,
  refuse_enqueue boolean not null default false,
  paused_at timestamptz,
  paused_by text,
  reason text,
  max_depth integer check (max_depth > 0),
  ageing boolean not null default false,
  check (paused = (paused_at is not null)),
  check (paused or not refuse_enqueue)
);
comment on table trunkline_internal.queues is 'Queues that are paused or limited in depth; a queue without a row is neither.';
comment on column trunkline_internal.queues.ageing is 'Whether one of sixteen claims serves its lanes from the lowest, so that none starves.';
alter table trunkline_internal.queues enable row level security, force row level security;
create policy owner_rows on trunkline_internal.queues to trunkline_owner using (true) with check (true);

-- No unique index: a first enqueue into a new lane would wait for the transaction of another first enqueue. Duplicates are
-- few (one per concurrent first enqueue), and readers treat them as one.
create table trunkline_internal.lanes (
  queue text not null,
  lane smallint not null check (lane between -100 and 99)
);
comment on table trunkline_internal.lanes is 'The lanes that exist, append-only: claims walk this list instead of searching the index for the next priority.';
comment on column trunkline_internal.lanes.lane is 'Twice the priority, plus one for jobs that were handed back: they go before the rest of their priority.';
create index lanes_by_queue on trunkline_internal.lanes (queue, lane);
alter table trunkline_internal.lanes enable row level security, force row level security;
create policy owner_rows on trunkline_internal.lanes to trunkline_owner using (true) with check (true);

create table trunkline_internal.job_transitions (
  from_state text not null,
  to_state text not null,
  by_function text not null,
  primary key (from_state, to_state, by_function)
);
comment on table trunkline_internal.job_transitions is 'Legal changes of state and the functions that make them; read by the guard of the test database, the diagram and the property test.';
alter table trunkline_internal.job_transitions enable row level security, force row level security;
create policy owner_rows on trunkline_internal.job_transitions to trunkline_owner using (true) with check (true);
insert into trunkline_internal.job_transitions (from_state, to_state, by_function) values
  ('none', 'ready', 'enqueue'),
  ('none', 'scheduled', 'enqueue'),
  ('none', 'ready', 'retry'),
  ('scheduled', 'ready', 'promote'),
  ('scheduled', 'ready', 'claim'),
  ('ready', 'running', 'claim'),
  ('ready', 'dead', 'claim'),
  ('ready', 'ready', 'reprioritise'),
  ('ready', 'ready', 'enqueue'),
  ('scheduled', 'scheduled', 'reprioritise'),
  ('scheduled', 'scheduled', 'enqueue'),
  ('blocked', 'blocked', 'reprioritise'),
  ('running', 'running', 'heartbeat'),
  ('running', 'running', 'progress'),
  ('running', 'running', 'cancel'),
  ('running', 'completed', 'complete'),
  ('running', 'scheduled', 'fail'),
  ('running', 'dead', 'fail'),
  ('running', 'cancelled', 'fail'),
  ('running', 'scheduled', 'snooze'),
  ('running', 'dead', 'snooze'),
  ('running', 'cancelled', 'snooze'),
  ('running', 'ready', 'release'),
  ('running', 'scheduled', 'release'),
  ('running', 'dead', 'release'),
  ('running', 'cancelled', 'release'),
  ('running', 'cancelled', 'acknowledge_cancel'),
  ('running', 'scheduled', 'reclaim'),
  ('running', 'dead', 'reclaim'),
  ('running', 'cancelled', 'reclaim'),
  ('ready', 'cancelled', 'cancel'),
  ('scheduled', 'cancelled', 'cancel'),
  ('blocked', 'cancelled', 'cancel'),
  ('dead', 'dead', 'acknowledge'),
  ('dead', 'ready', 'retry'),
  ('dead', 'none', 'discard'),
  ('dead', 'none', 'maintain_partitions'),
  ('completed', 'none', 'maintain_partitions'),
  ('cancelled', 'none', 'maintain_partitions'),
  ('running', 'cancelled', 'complete'),
  ('ready', 'blocked', 'claim'),
  ('ready', 'blocked', 'set_limit'),
  ('ready', 'blocked', 'sweep_buckets'),
  ('blocked', 'ready', 'set_limit'),
  ('blocked', 'ready', 'sweep_buckets'),
  ('blocked', 'dead', 'sweep_buckets'),
  ('blocked', 'blocked', 'enqueue'),
  ('running', 'scheduled', 'hand_over'),
  ('running', 'dead', 'hand_over'),
  ('running', 'cancelled', 'hand_over'),
  ('ready', 'cancelled', 'claim'),
  ('scheduled', 'cancelled', 'claim'),
  ('blocked', 'cancelled', 'claim'),
  ('ready', 'cancelled', 'expire'),
  ('scheduled', 'cancelled', 'expire'),
  ('blocked', 'cancelled', 'expire'),
  ('ready', 'cancelled', 'cancel_jobs'),
  ('scheduled', 'cancelled', 'cancel_jobs'),
  ('blocked', 'cancelled', 'cancel_jobs'),
  ('running', 'running', 'cancel_jobs'),
  ('ready', 'ready', 'reprioritise_jobs'),
  ('scheduled', 'scheduled', 'reprioritise_jobs'),
  ('blocked', 'blocked', 'reprioritise_jobs'),
  ('none', 'ready', 'retry_jobs'),
  ('dead', 'ready', 'retry_jobs'),
  ('dead', 'ready', 'retry_edited'),
  ('dead', 'none', 'discard_jobs'),
  ('dead', 'dead', 'acknowledge_jobs');
