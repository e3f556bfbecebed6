-- why: the four tables a job lives in, the bodies kept out of them, keys and events
-- breaking: no

-- Cache 1 on purpose: a claim's position relies on numbers being drawn in the order of time.
create sequence trunkline_internal.job_sequence as bigint cache 1;
comment on sequence trunkline_internal.job_sequence is 'Order of claiming within a lane; whatever makes a job ready draws a new number after its transaction has an id.';

create table trunkline_internal.waiting (
  job_id uuid not null constraint waiting_pkey primary key,
  sequence bigint,
  run_at timestamptz not null,
  created_at timestamptz not null,
  deferred_since timestamptz,
  attempt integer not null default 0 check (attempt >= 0),
  payload_day date,
  failures smallint not null default 0 check (failures >= 0),
  crashes smallint not null default 0 check (crashes >= 0),
  deferrals integer not null default 0 check (deferrals >= 0),
  max_attempts smallint not null check (max_attempts between 1 and 1000),
  lane smallint not null check (lane between -100 and 99),
  state text not null check (state in ('ready', 'scheduled', 'blocked')),
  queue text not null,
  task text not null,
  tenant text check (tenant <> ''),
  unique_key text,
  correlation_id text,
  reason text,
  retry_of uuid,
  tags text[],
  payload jsonb,
  last_error jsonb,
  constraint waiting_ready_has_sequence check ((state = 'ready') = (sequence is not null)),
  constraint waiting_attempts_left check (failures < max_attempts),
  constraint waiting_payload_in_one_place check ((payload is null) = (payload_day is not null))
);
comment on table trunkline_internal.waiting is 'Jobs that are not running yet: ready, scheduled or blocked.';
comment on column trunkline_internal.waiting.payload_day is 'Day of the body that holds a large payload.';
create index waiting_ready on trunkline_internal.waiting (queue, lane, sequence) where state = 'ready';
create index waiting_due on trunkline_internal.waiting (run_at) where state = 'scheduled';

create table trunkline_internal.running (
  job_id uuid not null constraint running_pkey primary key,
  sequence bigint not null,
  claimed_at timestamptz not null,
  lease_expires_at timestamptz not null,
  hard_deadline timestamptz not null,
  heartbeat_at timestamptz,
  cancel_requested_at timestamptz,
  run_at timestamptz not null,
  created_at timestamptz not null,
  deferred_since timestamptz,
  attempt integer not null check (attempt >= 1),
  payload_day date,
  failures smallint not null check (failures >= 0),
  crashes smallint not null check (crashes >= 0),
  deferrals integer not null check (deferrals >= 0),
  max_attempts smallint not null,
  lane smallint not null,
  progress smallint check (progress between 0 and 100),
  audit boolean not null,
  queue text not null,
  task text not null,
  worker text not null check (worker <> ''),
  tenant text,
  unique_key text,
  correlation_id text,
  retry_of uuid,
  tags text[],
  phase text,
  message text,
  cancel_reason text,
  payload jsonb,
  last_error jsonb,
  constraint running_attempts_left check (failures < max_attempts),
  constraint running_lease_within_hard_limit check (lease_expires_at > claimed_at and hard_deadline >= lease_expires_at),
  constraint running_heartbeat_not_before_claim check (heartbeat_at >= claimed_at),
  constraint running_reason_of_cancel check (cancel_reason is null or cancel_requested_at is not null),
  constraint running_payload_in_one_place check ((payload is null) = (payload_day is not null))
) with (fillfactor = 80);
comment on table trunkline_internal.running is 'Attempts that run now, each under the lease of one worker.';
comment on column trunkline_internal.running.lease_expires_at is 'The later of claim and heartbeat plus the lease, never past the hard deadline: one index finds silent and endless work.';
create index running_expiry on trunkline_internal.running (lease_expires_at);

create table trunkline_internal.finished (
  job_id uuid not null,
  finished_at timestamptz not null,
  claimed_at timestamptz,
  heartbeat_at timestamptz,
  run_at timestamptz not null,
  created_at timestamptz not null,
  attempt integer not null,
  payload_day date,
  result_day date,
  failures smallint not null,
  deferrals integer not null,
  max_attempts smallint not null,
  priority smallint not null,
  state text not null check (state in ('completed', 'cancelled')),
  queue text not null,
  task text not null,
  worker text,
  tenant text,
  unique_key text,
  correlation_id text,
  reason text,
  retry_of uuid,
  tags text[],
  payload jsonb,
  result jsonb,
  last_error jsonb,
  constraint finished_completed_was_claimed check (state = 'cancelled' or claimed_at is not null),
  constraint finished_result_only_when_completed check (state = 'completed' or (result is null and result_day is null)),
  constraint finished_result_in_one_place check (result is null or result_day is null)
) partition by range (finished_at);
comment on table trunkline_internal.finished is 'Completed and cancelled jobs, append-only, one partition a day.';
create index finished_by_job on trunkline_internal.finished (job_id);
create table trunkline_internal.finished_default partition of trunkline_internal.finished default;

create table trunkline_internal.dead (
  job_id uuid not null constraint dead_pkey primary key,
  died_at timestamptz not null,
  claimed_at timestamptz,
  heartbeat_at timestamptz,
  run_at timestamptz not null,
  created_at timestamptz not null,
  acknowledged_at timestamptz,
  attempt integer not null,
  payload_day date,
  failures smallint not null,
  crashes smallint not null,
  deferrals integer not null,
  max_attempts smallint not null,
  priority smallint not null,
  queue text not null,
  task text not null,
  worker text,
  tenant text,
  unique_key text,
  correlation_id text,
  reason text not null,
  retry_of uuid,
  acknowledged_by text,
  tags text[],
  payload jsonb,
  last_error jsonb,
  constraint dead_acknowledged_by_somebody check ((acknowledged_at is null) = (acknowledged_by is null)),
  constraint dead_payload_in_one_place check ((payload is null) = (payload_day is not null))
);
comment on table trunkline_internal.dead is 'Dead letters, kept until replayed, discarded or long acknowledged.';
create index dead_by_time on trunkline_internal.dead (died_at);

-- No foreign key: a reference is (job, kind) and carries the day, so that the join prunes and a
-- day can be dropped without a scan.
create table trunkline_internal.bodies (
  day date not null,
  job_id uuid not null,
  kind text not null check (kind in ('payload', 'result')),
  body jsonb not null,
  constraint bodies_pkey primary key (job_id, kind, day)
) partition by range (day);
comment on table trunkline_internal.bodies is 'Payloads and results too large to move from table to table, written once, one partition a day.';
create table trunkline_internal.bodies_default partition of trunkline_internal.bodies default;

create table trunkline_internal.unique_keys (
  profile text not null,
  tenant text not null,
  unique_key text not null,
  job_id uuid not null,
  constraint unique_keys_pkey primary key (profile, tenant, unique_key)
);
create index unique_keys_by_job on trunkline_internal.unique_keys (job_id);
comment on table trunkline_internal.unique_keys is 'Keys held by live jobs. An empty tenant stands for none, since a key must not be null.';

create table trunkline_internal.idempotency_keys (
  tenant text not null,
  idempotency_key text not null,
  job_id uuid not null,
  task text not null,
  run_at timestamptz not null,
  expires_at timestamptz not null,
  constraint idempotency_keys_pkey primary key (tenant, idempotency_key)
);
comment on table trunkline_internal.idempotency_keys is 'First answers to requests, kept until they expire, longer than the job if need be.';
create index idempotency_keys_by_expiry on trunkline_internal.idempotency_keys (expires_at);

create table trunkline_internal.events (
  at timestamptz not null,
  job_id uuid not null,
  attempt integer not null,
  kind text not null check (kind <> ''),
  to_state text,
  task text not null,
  queue text not null,
  tenant text,
  worker text,
  actor text not null,
  detail jsonb
) partition by range (at);
comment on table trunkline_internal.events is 'What happened to jobs, append-only: every exceptional transition, and every transition of audited tasks.';
create index events_by_job on trunkline_internal.events (job_id);
create index events_of_losses on trunkline_internal.events (at) where kind = 'lost';
create table trunkline_internal.events_default partition of trunkline_internal.events default;

create table trunkline_internal.partitioned_tables (
  parent text primary key,
  unit text not null check (unit in ('day', 'week')),
  retention_setting text not null references trunkline_internal.settings (name)
);
comment on table trunkline_internal.partitioned_tables is 'Which tables have partitions by time, how long one is and which setting says when it goes.';
insert into trunkline_internal.partitioned_tables (parent, unit, retention_setting) values
  ('bodies', 'day', 'finished_retention'),
  ('events', 'week', 'events_retention'),
  ('finished', 'day', 'finished_retention');

create table trunkline_internal.partitions (
  parent text not null references trunkline_internal.partitioned_tables (parent),
  partition text not null,
  lower_bound timestamptz not null,
  upper_bound timestamptz not null,
  primary key (parent, lower_bound),
  unique (partition),
  check (upper_bound > lower_bound)
);
comment on table trunkline_internal.partitions is 'The partitions that exist, with their bounds, so that nobody has to parse them out of the catalogue.';

create type trunkline.enqueued as (job_id uuid, created boolean, state text, run_at timestamptz);
comment on type trunkline.enqueued is 'Answer of enqueue: the job, whether this call made it, its state and when it is due.';

create type trunkline.claimed_job as (
  job_id uuid,
  attempt integer,
  task text,
  queue text,
  priority integer,
  payload jsonb,
  tenant text,
  correlation_id text,
  tags text[],
  failures integer,
  deferrals integer,
  max_attempts integer,
  created_at timestamptz,
  run_at timestamptz,
  claimed_at timestamptz,
  lease_expires_at timestamptz,
  hard_deadline timestamptz,
  last_error jsonb,
  "position" jsonb
);
comment on type trunkline.claimed_job is 'One claimed job; the last row carries the position for the next claim when the caller gave one.';

create type trunkline.verdict as (job_id uuid, attempt integer, verdict text, state text, run_at timestamptz);
comment on type trunkline.verdict is 'What became of one job of a batch: ok, lost, cancel or already, its new state and when it is due again.';

create type trunkline.changed_job as (job_id uuid, outcome text, state text);
comment on type trunkline.changed_job is 'What a request about one job did.';

create type trunkline.job_detail as (
  job_id uuid,
  state text,
  task text,
  queue text,
  priority integer,
  tenant text,
  payload jsonb,
  result jsonb,
  attempt integer,
  failures integer,
  crashes integer,
  deferrals integer,
  max_attempts integer,
  created_at timestamptz,
  run_at timestamptz,
  claimed_at timestamptz,
  heartbeat_at timestamptz,
  lease_expires_at timestamptz,
  hard_deadline timestamptz,
  cancel_requested_at timestamptz,
  finished_at timestamptz,
  acknowledged_at timestamptz,
  worker text,
  progress integer,
  phase text,
  message text,
  reason text,
  unique_key text,
  correlation_id text,
  retry_of uuid,
  tags text[],
  last_error jsonb,
  errors jsonb
);
comment on type trunkline.job_detail is 'One job wherever it is, with its bodies and the errors of its attempts, newest last.';

create type trunkline.explanation as (reason text, until timestamptz, detail jsonb);
comment on type trunkline.explanation is 'One reason why a job is not running, until when, and what stands behind it.';

create type trunkline_internal.move as (
  job_id uuid,
  to_state text,
  run_at timestamptz,
  failures smallint,
  crashes smallint,
  deferrals integer,
  front boolean,
  reason text,
  error jsonb,
  kind text,
  detail jsonb
);
comment on type trunkline_internal.move is 'Where one running job goes, decided by fail, snooze, release, acknowledge_cancel or reclaim and carried out by move_running.';
