-- Periodic maintenance, and the partitions it makes and drops.

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
alter table trunkline_internal.duties enable row level security, force row level security;
create policy owner_rows on trunkline_internal.duties to trunkline_owner using (true) with check (true);
insert into trunkline_internal.duties (duty, every, description) values
  ('maintain_partitions', '1 minute', 'Makes partitions ahead, drops what is past retention, removes long acknowledged dead letters.'),
  ('promote', '5 seconds', 'Makes due jobs ready where no claim does it.'),
  ('reclaim', '15 seconds', 'Takes back jobs whose lease, worker or time limit is over.'),
  ('run_schedules', '1 second', 'Enqueues what schedules say is due.'),
  ('sweep_idempotency', '10 minutes', 'Removes expired idempotency keys.'),
  ('sweep_buckets', '5 seconds', 'Closes buckets at which nobody waits, and forgets what no window sees any more.');

create table trunkline_internal.partitioned_tables (
  parent text primary key,
  unit text not null check (unit in ('day', 'week')),
  retention_setting text not null references trunkline_internal.settings (name)
);
comment on table trunkline_internal.partitioned_tables is 'Which tables have partitions by time, how long one is and which setting says when it goes.';
alter table trunkline_internal.partitioned_tables enable row level security, force row level security;
create policy owner_rows on trunkline_internal.partitioned_tables to trunkline_owner using (true) with check (true);
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
alter table trunkline_internal.partitions enable row level security, force row level security;
create policy owner_rows on trunkline_internal.partitions to trunkline_owner using (true) with check (true);

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
