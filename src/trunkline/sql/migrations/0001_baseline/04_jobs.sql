-- The four tables a job lives in, the bodies kept out of them, keys and events.

-- Cache 1 on purpose: a claim's position relies on numbers being drawn in the order of time.
create sequence trunkline_internal.job_sequence as bigint cache 1;
comment on sequence trunkline_internal.job_sequence is 'Order of claiming within a lane; whatever makes a job ready draws a new number after its transaction has an id.';

create table trunkline_internal.waiting (
  job_id uuid not null constraint waiting_pkey primary key,
  sequence bigint,
  run_at timestamptz not null,
  created_at timestamptz not null,
  deferred_since timestamptz,
  expires_at timestamptz,
  attempt integer not null default 0,
  payload_day date,
  failures smallint not null default 0,
  crashes smallint not null default 0,
  deferrals integer not null default 0,
  max_attempts smallint not null,
  lane smallint not null,
  state text not null,
  queue text not null,
  task text not null,
  tenant text,
  unique_key text,
  correlation_id text,
  reason text,
  retry_of uuid,
  tags text[],
  payload jsonb,
  last_error jsonb,
  bucket bigint,
  cost_requests bigint,
  cost_tokens bigint,
  cost_units bigint,
  limit_ids integer[],
  bucket_ids bigint[],
  -- One constraint with as few nodes in its parse tree as possible: PostgreSQL reads the text of each CHECK once per INSERT
  -- statement, 4 µs each, a tenth of a single enqueue with ten of them. A null CHECK passes, so a nullable column needs no
  -- test for null. The counters are checked in running, the lane in lanes.
  constraint waiting_is_sound check (
    failures < max_attempts
    and max_attempts between 1 and 1000
    and tenant <> ''
    and state = any ('{ready,scheduled,blocked}')
    and (state = 'ready') = (sequence is not null)
    and (payload is null) = (payload_day is not null)
  )
);
comment on table trunkline_internal.waiting is 'Jobs that are not running yet: ready, scheduled or blocked.';
comment on column trunkline_internal.waiting.expires_at is 'If its first attempt has not started by then, the job ends cancelled with reason expired.';
comment on column trunkline_internal.waiting.payload_day is 'Day of the body that holds a large payload.';
comment on column trunkline_internal.waiting.cost_requests is 'Requests that a claim charges to each of its buckets; null for a job without limits. cost_tokens and cost_units likewise.';
comment on column trunkline_internal.waiting.limit_ids is 'The limits it was enqueued under, in the order of its task. Null for a job without limits.';
comment on column trunkline_internal.waiting.bucket_ids is 'The bucket of each of its limits, in the order of limit_ids.';
comment on column trunkline_internal.waiting.bucket is 'The bucket in whose lane it waits: the first of bucket_ids, or the one that had no room last.';
-- With a short header, every read of an element would copy the array first.
alter table trunkline_internal.waiting alter column limit_ids set storage plain;
alter table trunkline_internal.waiting alter column bucket_ids set storage plain;
create index waiting_due on trunkline_internal.waiting (run_at) where state = 'scheduled';
-- Limited jobs have their own index, so that a hundred thousand of them behind a spent limit slow down no claim. Conditions
-- are tested in this order at every insert: a test for null costs nothing, the state is a comparison of texts.
create index waiting_ready on trunkline_internal.waiting (queue, lane, sequence) where bucket is null and state = 'ready';
create index waiting_limited on trunkline_internal.waiting (bucket, queue, lane, sequence) where bucket is not null and state = 'ready';
-- Counts the jobs that wait for a bucket with a depth limit.
create index waiting_limited_later on trunkline_internal.waiting (bucket) where bucket is not null and state = 'scheduled';
create index waiting_later on trunkline_internal.waiting (queue, state) where state <> 'ready';
-- A claim reads it to find out whether a job has expired. Jobs without a deadline, and retries, are not in it.
create index waiting_expiry on trunkline_internal.waiting (expires_at) where expires_at is not null and attempt = 0;
create index waiting_deferred on trunkline_internal.waiting (deferred_since) where deferred_since is not null;
alter table trunkline_internal.waiting enable row level security, force row level security;
create policy owner_rows on trunkline_internal.waiting to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.waiting for select using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

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
  expires_at timestamptz,
  attempt integer not null,
  payload_day date,
  failures smallint not null,
  crashes smallint not null,
  deferrals integer not null,
  max_attempts smallint not null,
  lane smallint not null,
  progress smallint,
  audit boolean not null,
  queue text not null,
  task text not null,
  worker text not null,
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
  cost_requests bigint,
  cost_tokens bigint,
  cost_units bigint,
  limit_ids integer[],
  bucket_ids bigint[],
  cancel_answered_at timestamptz,
  -- One constraint, as in waiting.
  constraint running_is_sound check (
    attempt >= 1
    and least(failures, crashes, deferrals) >= 0
    and failures < max_attempts
    and progress between 0 and 100
    and worker <> ''
    and lease_expires_at > claimed_at
    and hard_deadline >= lease_expires_at
    and heartbeat_at >= claimed_at
    and (cancel_reason is null or cancel_requested_at is not null)
    and (payload is null) = (payload_day is not null)
  )
) with (fillfactor = 80);
comment on table trunkline_internal.running is 'Attempts that run now, each under the lease of one worker.';
comment on column trunkline_internal.running.lease_expires_at is 'The later of claim and heartbeat plus the lease, never past the hard deadline: one index finds silent and endless work.';
comment on column trunkline_internal.running.cancel_answered_at is 'When a heartbeat or progress call first returned cancel for this attempt; from then on complete ends it cancelled.';
alter table trunkline_internal.running alter column limit_ids set storage plain;
alter table trunkline_internal.running alter column bucket_ids set storage plain;
create index running_expiry on trunkline_internal.running (lease_expires_at);
alter table trunkline_internal.running enable row level security, force row level security;
create policy owner_rows on trunkline_internal.running to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.running for select using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

create table trunkline_internal.finished (
  job_id uuid not null,
  finished_at timestamptz not null,
  claimed_at timestamptz,
  heartbeat_at timestamptz,
  run_at timestamptz not null,
  created_at timestamptz not null,
  expires_at timestamptz,
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
-- Rows are appended in the order of time, so the range of each 128 pages is enough to find a time. A B-tree would add an
-- entry for every completion.
create index finished_by_time on trunkline_internal.finished using brin (finished_at) with (autosummarize = on);
alter table trunkline_internal.finished enable row level security, force row level security;
create policy owner_rows on trunkline_internal.finished to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.finished for select using (tenant = nullif(current_setting('trunkline.tenant', true), ''));
-- Partitions are forced like their parents. The policy lets the owner move rows out of a default partition, and pg_dump read
-- each of them. make_partitions creates dated partitions with the same two statements.
create table trunkline_internal.finished_default partition of trunkline_internal.finished default;
alter table trunkline_internal.finished_default enable row level security, force row level security;
create policy owner_rows on trunkline_internal.finished_default to trunkline_owner using (true) with check (true);

create table trunkline_internal.dead (
  job_id uuid not null constraint dead_pkey primary key,
  died_at timestamptz not null,
  claimed_at timestamptz,
  heartbeat_at timestamptz,
  run_at timestamptz not null,
  created_at timestamptz not null,
  expires_at timestamptz,
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
  cost_requests bigint,
  cost_tokens bigint,
  cost_units bigint,
  limit_ids integer[],
  bucket_ids bigint[],
  error_group text,
  constraint dead_acknowledged_by_somebody check ((acknowledged_at is null) = (acknowledged_by is null)),
  constraint dead_payload_in_one_place check ((payload is null) = (payload_day is not null))
);
comment on table trunkline_internal.dead is 'Dead letters, kept until replayed, discarded or long acknowledged.';
comment on column trunkline_internal.dead.error_group is 'Hash of the last error without what varies from job to job; see error_pattern.';
create index dead_by_time on trunkline_internal.dead (died_at);
create index dead_by_queue on trunkline_internal.dead (queue);
create index dead_by_group on trunkline_internal.dead (error_group, job_id);
create index dead_unseen on trunkline_internal.dead (died_at) where acknowledged_at is null;
alter table trunkline_internal.dead enable row level security, force row level security;
create policy owner_rows on trunkline_internal.dead to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.dead for select using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

-- No foreign key: a reference is (job, kind) and carries the day, so that the join prunes and a day can be dropped without
-- a scan.
create table trunkline_internal.bodies (
  day date not null,
  job_id uuid not null,
  kind text not null check (kind in ('payload', 'result')),
  body jsonb not null,
  constraint bodies_pkey primary key (job_id, kind, day)
) partition by range (day);
comment on table trunkline_internal.bodies is 'Payloads and results too large to move from table to table, written once, one partition a day.';
alter table trunkline_internal.bodies enable row level security, force row level security;
create policy owner_rows on trunkline_internal.bodies to trunkline_owner using (true) with check (true);
create table trunkline_internal.bodies_default partition of trunkline_internal.bodies default;
alter table trunkline_internal.bodies_default enable row level security, force row level security;
create policy owner_rows on trunkline_internal.bodies_default to trunkline_owner using (true) with check (true);

create table trunkline_internal.unique_keys (
  profile text not null,
  tenant text not null,
  unique_key text not null,
  job_id uuid not null,
  task text not null default '',
  constraint unique_keys_pkey primary key (profile, tenant, task, unique_key),
  constraint unique_keys_scope check ((profile = 'default') = (task <> ''))
);
comment on table trunkline_internal.unique_keys is 'Keys held by live jobs. An empty tenant stands for none, since a key must not be null.';
comment on column trunkline_internal.unique_keys.task is 'The task that the key counts for. Empty in a profile, where a key counts for all its tasks.';
create index unique_keys_by_job on trunkline_internal.unique_keys (job_id);
alter table trunkline_internal.unique_keys enable row level security, force row level security;
create policy owner_rows on trunkline_internal.unique_keys to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.unique_keys for select
  using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

create table trunkline_internal.idempotency_keys (
  tenant text not null,
  idempotency_key text not null,
  job_id uuid not null,
  task text not null,
  run_at timestamptz not null,
  expires_at timestamptz not null,
  payload_hash bigint,
  constraint idempotency_keys_pkey primary key (tenant, idempotency_key)
);
comment on table trunkline_internal.idempotency_keys is 'First answers to requests, kept until they expire, longer than the job if need be.';
comment on column trunkline_internal.idempotency_keys.payload_hash is 'Hash of the first request''s payload. Null for keys from before this column: they match any payload.';
create index idempotency_keys_by_expiry on trunkline_internal.idempotency_keys (expires_at);
alter table trunkline_internal.idempotency_keys enable row level security, force row level security;
create policy owner_rows on trunkline_internal.idempotency_keys to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.idempotency_keys for select
  using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

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
create index events_lost on trunkline_internal.events (at) where kind = 'lost';
create index events_by_time on trunkline_internal.events using brin (at) with (autosummarize = on);
alter table trunkline_internal.events enable row level security, force row level security;
create policy owner_rows on trunkline_internal.events to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.events for select using (tenant = nullif(current_setting('trunkline.tenant', true), ''));
create table trunkline_internal.events_default partition of trunkline_internal.events default;
alter table trunkline_internal.events_default enable row level security, force row level security;
create policy owner_rows on trunkline_internal.events_default to trunkline_owner using (true) with check (true);
