-- why: recorded steps of handlers, suspended jobs, events that jobs wait for, and steps that run once per workflow
-- breaking: no

-- Partitioned like bodies: a day is dropped without a scan, and rows that live jobs need are copied to today before.
create table trunkline_internal.recorded_steps (
  day date not null,
  recorded_at timestamptz not null,
  job_id uuid not null,
  arguments_hash bigint,
  attempt integer not null,
  place integer not null check (place between 1 and 10000),
  kind text not null check (kind in ('step', 'sleep', 'event', 'jobs')),
  name text not null check (name <> '' and length(name) <= 200),
  key text not null check (key <> '' and length(key) <= 200),
  result jsonb,
  constraint recorded_steps_pkey primary key (job_id, kind, name, key, day)
) partition by range (day);
comment on table trunkline_internal.recorded_steps is 'Results of steps within handlers, written once and read by later attempts of the job, one partition a day.';
comment on column trunkline_internal.recorded_steps.key is 'The key that the handler passed, or # and the number of the call among the calls of this name.';
comment on column trunkline_internal.recorded_steps.place is 'The order in which the steps of the job were recorded, from 1.';
comment on column trunkline_internal.recorded_steps.arguments_hash is 'Hash of the arguments of the call; null if it is not checked.';
alter table trunkline_internal.recorded_steps enable row level security, force row level security;
create policy owner_rows on trunkline_internal.recorded_steps to trunkline_owner using (true) with check (true);
create table trunkline_internal.recorded_steps_default partition of trunkline_internal.recorded_steps default;
alter table trunkline_internal.recorded_steps_default enable row level security, force row level security;
create policy owner_rows on trunkline_internal.recorded_steps_default to trunkline_owner using (true) with check (true);
insert into trunkline_internal.partitioned_tables (parent, unit, retention_setting) values
  ('recorded_steps', 'day', 'finished_retention');

create table trunkline_internal.job_waits (
  job_id uuid not null,
  since timestamptz not null,
  until timestamptz,
  reference uuid,
  attempt integer not null,
  place integer not null,
  kind text not null check (kind in ('sleep', 'event', 'jobs', 'once')),
  name text not null check (name <> '' and length(name) <= 200),
  key text not null check (key <> '' and length(key) <= 200),
  tenant text,
  address text check (address <> '' and length(address) <= 200),
  constraint job_waits_pkey primary key (job_id, kind, name, key),
  constraint job_waits_reference check ((reference is not null) = (kind in ('jobs', 'once'))),
  constraint job_waits_address check (address is null or kind = 'event'),
  constraint job_waits_until check (until is not null or kind in ('event', 'jobs'))
);
comment on table trunkline_internal.job_waits is 'What suspended jobs wait for. The row stays until the handler has received the outcome, so that a timeout counts from the first wait.';
comment on column trunkline_internal.job_waits.attempt is 'The last attempt that waited. Waits of earlier attempts do not suspend the job again.';
comment on column trunkline_internal.job_waits.until is 'The end of a sleep or timeout; for once, when the job checks again whether the holder is still running. Null: no end.';
comment on column trunkline_internal.job_waits.address is 'The key that the event is sent to. Null: the event is sent to the job.';
comment on column trunkline_internal.job_waits.reference is 'The workflow of child jobs, or the scope of a step that runs once.';
create index job_waits_by_address on trunkline_internal.job_waits (address, name) where address is not null;
create index job_waits_by_reference on trunkline_internal.job_waits (reference) where reference is not null;
alter table trunkline_internal.job_waits enable row level security, force row level security;
create policy owner_rows on trunkline_internal.job_waits to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.job_waits for select
  using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

create table trunkline_internal.sent_events (
  sent_at timestamptz not null,
  job_id uuid,
  tenant text,
  address text check (address <> '' and length(address) <= 200),
  name text not null check (name <> '' and length(name) <= 200),
  event_id text check (event_id <> '' and length(event_id) <= 200),
  payload jsonb not null,
  constraint sent_events_target check (num_nonnulls(job_id, address) = 1)
);
comment on table trunkline_internal.sent_events is 'Events sent to jobs or to keys, which jobs wait for. The first event of a name wins.';
create unique index sent_events_by_job on trunkline_internal.sent_events (job_id, name) where job_id is not null;
create unique index sent_events_by_address on trunkline_internal.sent_events (address, name, coalesce(tenant, ''))
  where address is not null;
create index sent_events_by_time on trunkline_internal.sent_events (sent_at);
alter table trunkline_internal.sent_events enable row level security, force row level security;
create policy owner_rows on trunkline_internal.sent_events to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.sent_events for select
  using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

create table trunkline_internal.once_steps (
  scope uuid not null,
  started_at timestamptz not null,
  recorded_at timestamptz,
  holder uuid not null,
  attempt integer not null,
  name text not null check (name <> '' and length(name) <= 200),
  result jsonb,
  constraint once_steps_pkey primary key (scope, name)
);
comment on table trunkline_internal.once_steps is 'Steps that run once for all jobs of a workflow: which attempt runs the step, then its result.';
comment on column trunkline_internal.once_steps.scope is 'The workflow, or the job itself if it belongs to none.';
create index once_steps_by_time on trunkline_internal.once_steps (started_at);
alter table trunkline_internal.once_steps enable row level security, force row level security;
create policy owner_rows on trunkline_internal.once_steps to trunkline_owner using (true) with check (true);

create type trunkline.recorded_step as (
  kind text,
  name text,
  key text,
  place integer,
  arguments_hash bigint,
  result jsonb
);
comment on type trunkline.recorded_step is 'One recorded step of a job, for the attempt that runs now.';

create type trunkline.job_step as (
  place integer,
  kind text,
  name text,
  key text,
  state text,
  attempt integer,
  recorded_at timestamptz,
  until timestamptz,
  result jsonb
);
comment on type trunkline.job_step is 'A step of a job: recorded with its result, or waiting until a time or an event.';

create type trunkline.wait_answer as (outcome text, until timestamptz, result jsonb);
comment on type trunkline.wait_answer is 'Outcome of begin_wait or begin_once: over, timeout or run, with the result; wait, with its end; or cancel.';

create type trunkline.sent_event as (outcome text, resumed integer, sent_at timestamptz);
comment on type trunkline.sent_event is 'Outcome of send_event: delivered, stored or already; how many jobs it resumed; when the event that counts was sent.';

insert into trunkline_internal.settings (name, kind, default_value, minimum, maximum, description) values
  ('sent_event_retention', 'interval', '7 days', '1 minute', '3650 days', 'How long an event that was sent to a key is kept.');

insert into trunkline_internal.duties (duty, every, run_order, builtin, needs_all_tenants, function, description) values
  ('sweep_steps', '10 minutes', 10, true, false, 'trunkline_internal.duty_sweep_steps',
    'Removes sent events past retention, and waits and once results of jobs that no longer exist; resumes jobs that were missed.');

insert into trunkline_internal.job_transitions (from_state, to_state, by_function) values
  ('running', 'scheduled', 'suspend'),
  ('running', 'blocked', 'suspend'),
  ('running', 'ready', 'suspend'),
  ('running', 'cancelled', 'suspend'),
  ('blocked', 'ready', 'send_event'),
  ('scheduled', 'ready', 'send_event'),
  ('blocked', 'ready', 'record_once'),
  ('scheduled', 'ready', 'record_once'),
  ('scheduled', 'ready', 'complete'),
  ('blocked', 'ready', 'fail'),
  ('scheduled', 'ready', 'fail'),
  ('blocked', 'ready', 'reclaim'),
  ('scheduled', 'ready', 'reclaim'),
  ('blocked', 'ready', 'cancel'),
  ('scheduled', 'ready', 'cancel'),
  ('blocked', 'ready', 'cancel_workflow'),
  ('scheduled', 'ready', 'cancel_workflow'),
  ('scheduled', 'ready', 'advance_workflows'),
  ('blocked', 'ready', 'sweep_steps'),
  ('scheduled', 'ready', 'sweep_steps'),
  ('none', 'ready', 'begin_jobs'),
  ('none', 'scheduled', 'begin_jobs'),
  ('dead', 'ready', 'retry_fresh');
