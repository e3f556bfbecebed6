-- why: who works, and which maintenance ran when
-- breaking: no

create table trunkline_internal.workers (
  worker text primary key check (worker <> '' and length(worker) <= 200),
  started_at timestamptz not null,
  seen_at timestamptz not null,
  pulse_interval interval not null check (pulse_interval > interval '0' and pulse_interval <= interval '1 hour'),
  state text not null default 'active' check (state in ('active', 'draining', 'gone', 'stopped')),
  host text,
  pid integer,
  version text,
  queues text[],
  tasks text[],
  detail jsonb,
  check (seen_at >= started_at)
) with (fillfactor = 70);
comment on table trunkline_internal.workers is 'Worker processes; one lives while it is seen.';

create table trunkline_internal.duties (
  duty text primary key,
  every interval not null check (every > interval '0'),
  description text not null,
  started_at timestamptz,
  ended_at timestamptz,
  succeeded_at timestamptz,
  rows integer,
  runs bigint not null default 0,
  failures bigint not null default 0,
  failures_in_a_row integer not null default 0,
  last_error jsonb,
  state jsonb not null default '{}'
) with (fillfactor = 70);
comment on table trunkline_internal.duties is 'Periodic maintenance with its recorded pulse; one that never ran is late.';
insert into trunkline_internal.duties (duty, every, description) values
  ('maintain_partitions', '1 minute', 'Makes partitions ahead, drops what is past retention, removes long acknowledged dead letters.'),
  ('promote', '5 seconds', 'Makes due jobs ready where no claim does it.'),
  ('reclaim', '15 seconds', 'Takes back jobs whose lease, worker or time limit is over.'),
  ('run_schedules', '1 second', 'Enqueues what schedules say is due.'),
  ('sweep_idempotency', '10 minutes', 'Removes expired idempotency keys.');

create type trunkline.reclaimed_job as (
  job_id uuid,
  task text,
  attempt integer,
  worker text,
  reason text,
  state text,
  failures integer,
  run_at timestamptz
);
comment on type trunkline.reclaimed_job is 'One job a reclaim took back, from whom and where it went.';

create type trunkline.duty_run as (duty text, ran boolean, rows integer, error text);
comment on type trunkline.duty_run is 'Whether a duty ran in this call, on how many rows, with which error.';

create type trunkline.health_check as ("check" text, ok boolean, detail jsonb);
comment on type trunkline.health_check is 'One thing health looked at.';
