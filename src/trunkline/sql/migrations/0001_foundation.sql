-- why: what every other table stands on: bookkeeping, settings, task policies, queues and the table of legal transitions
-- breaking: no

create table trunkline_internal.schema_migrations (
  version integer primary key,
  name text not null,
  sha256 text not null,
  breaking boolean not null,
  applied_at timestamptz not null default clock_timestamp(),
  applied_by text not null default session_user
);
comment on table trunkline_internal.schema_migrations is 'The migrations applied to this database, one row each.';

create type trunkline.schema_version_info as (
  version integer,
  contract integer,
  oldest_contract integer
);
comment on type trunkline.schema_version_info is 'Answer of schema_version: the newest migration, the contract it serves and the oldest client contract it still serves.';

create table trunkline_internal.settings (
  name text primary key,
  kind text not null check (kind in ('boolean', 'integer', 'interval', 'text')),
  default_value text not null,
  value text,
  minimum text,
  maximum text,
  description text not null,
  updated_at timestamptz,
  updated_by text,
  check ((value is null) = (updated_at is null))
);
comment on table trunkline_internal.settings is 'Settings of the engine: a checked type, a default and, where an operator changed it, the value in force.';

insert into trunkline_internal.settings (name, kind, default_value, minimum, maximum, description) values
  ('allow_unknown_tasks', 'boolean', 'false', null, null, 'Whether enqueue registers a task it does not know instead of refusing it.'),
  ('backpressure_delay', 'interval', '30 seconds', '1 second', '1 day', 'How long a worker snoozes a job whose provider has no capacity.'),
  ('claims_enabled', 'boolean', 'true', null, null, 'Maintenance switch: while false no job is claimed.'),
  ('crash_limit', 'integer', '3', '1', '1000',
    'How many worker deaths a job may cause before it is put aside as dead; a task may say otherwise.'),
  ('dead_retention', 'interval', '30 days', '30 days', '36500 days', 'How long a dead letter is kept after it was acknowledged.'),
  ('events_retention', 'interval', '365 days', '1 day', '36500 days', 'How long events are kept.'),
  ('finished_retention', 'interval', '30 days', '1 day', '36500 days', 'How long completed and cancelled jobs are kept.'),
  ('heartbeat_interval', 'interval', '30 seconds', '1 second', '1 day',
    'How often a worker tells that its jobs live. Three of them must fit into the lease.'),
  ('idempotency_retention', 'interval', '7 days', '1 minute', '3650 days', 'How long an idempotency key answers with its first job.'),
  ('lease', 'interval', '300 seconds', '3 seconds', '365 days', 'Lease of tasks that do not say their own.'),
  ('max_deferral_age', 'interval', '24 hours', '1 minute', '3650 days',
    'A job deferred for longer without progress is reported, and dead where its task says so.'),
  ('max_deferrals', 'integer', '20', '1', '1000000', 'A job deferred more often in a row is reported, and dead where its task says so.'),
  ('max_immediate_releases', 'integer', '5', '0', '1000',
    'How often in a row a released job is ready again at once; after that it waits as a deferred one.'),
  ('max_payload_bytes', 'integer', '262144', '1024', '67108864', 'Largest payload or result, in bytes of stored JSON.'),
  ('partitions_ahead', 'interval', '7 days', '1 day', '90 days', 'How far ahead partitions are made.'),
  ('pulse_interval', 'interval', '5 seconds', '1 second', '1 hour', 'How often a worker process shows that it lives.'),
  ('pulse_misses', 'integer', '2', '1', '100', 'After how many missed pulses a worker counts as gone.'),
  ('reclaim_jitter', 'interval', '60 seconds', '0 seconds', '1 day',
    'A lost job is due again after a random time up to this, drawn per job in whole seconds.'),
  ('tenant_claim', 'text', 'tenant', null, null, 'The field of request.jwt.claims that names the tenant.');

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
  updated_at timestamptz not null
);
comment on table trunkline_internal.tasks is 'Tasks and their policies: leases, attempts, back-off and audit are data, not code.';
comment on column trunkline_internal.tasks.lease is 'Null: the setting lease.';
comment on column trunkline_internal.tasks.hard_limit is 'Null: four times the lease.';
comment on column trunkline_internal.tasks.lost_backoff is 'Whether a lost attempt waits by the back-off instead of the reclaim jitter.';
comment on column trunkline_internal.tasks.unique_until is 'Whether a unique key is free again when the job is claimed or when it ends.';

create table trunkline_internal.queues (
  queue text primary key check (queue <> '' and length(queue) <= 200),
  paused boolean not null default false,
  refuse_enqueue boolean not null default false,
  paused_at timestamptz,
  paused_by text,
  reason text,
  max_depth integer check (max_depth > 0),
  check (paused = (paused_at is not null)),
  check (paused or not refuse_enqueue)
);
comment on table trunkline_internal.queues is 'Queues that are paused or limited in depth; a queue without a row is neither.';

-- No unique index: a first enqueue into a new lane would wait for the transaction of another
-- first enqueue. Doubles are few (one per concurrent first) and readers take them as one.
create table trunkline_internal.lanes (
  queue text not null,
  lane smallint not null
);
create index lanes_by_queue on trunkline_internal.lanes (queue, lane);
comment on table trunkline_internal.lanes is 'The lanes that exist, append-only: claims walk this list instead of searching the index for the next priority.';
comment on column trunkline_internal.lanes.lane is 'Twice the priority, plus one for jobs that were handed back: they go before the rest of their priority.';

create table trunkline_internal.job_transitions (
  from_state text not null,
  to_state text not null,
  by_function text not null,
  primary key (from_state, to_state, by_function)
);
comment on table trunkline_internal.job_transitions is 'Legal changes of state and the functions that make them; read by the guard of the test database, the diagram and the property test.';

insert into trunkline_internal.job_transitions (from_state, to_state, by_function) values
  ('none', 'ready', 'enqueue'),
  ('none', 'scheduled', 'enqueue'),
  ('none', 'blocked', 'enqueue'),
  ('none', 'ready', 'retry'),
  ('blocked', 'ready', 'unblock'),
  ('ready', 'blocked', 'block'),
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
  ('cancelled', 'none', 'maintain_partitions');
