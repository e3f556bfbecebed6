-- Periodic maintenance, and the partitions that it creates and drops.

create table trunkline_internal.duties (
  duty text primary key,
  function text not null,
  every interval not null check (every > interval '0'),
  description text not null,
  enabled boolean not null default true,
  builtin boolean not null default false,
  run_order smallint not null default 0,
  needs_all_tenants boolean not null default true,
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
comment on table trunkline_internal.duties is 'Periodic work: which function runs how often, and how its last runs ended. A duty that never ran is late.';
comment on column trunkline_internal.duties.function is 'The function with its schema, quoted as needed. It is text, so that a dump restores the row before the function.';
comment on column trunkline_internal.duties.run_order is 'Duties with a lower number run first within one call of run_duties.';
comment on column trunkline_internal.duties.needs_all_tenants is 'Whether a session that acts for one tenant leaves the duty to other sessions.';
alter table trunkline_internal.duties enable row level security, force row level security;
create policy owner_rows on trunkline_internal.duties to trunkline_owner using (true) with check (true);
-- Duties that users add run first: until the transaction ends, a duty stays locked for other callers, and a user's duty may
-- be slow. maintain_partitions runs last because a partition that it attaches stays locked until then, too.
-- run_schedules could enqueue only for its own tenant in a narrowed session, and the duty would count as done.
insert into trunkline_internal.duties (duty, every, run_order, builtin, needs_all_tenants, function, description) values
  ('maintain_partitions', '1 minute', 20, true, false, 'trunkline_internal.duty_maintain_partitions',
    'Creates partitions ahead of time, drops those past retention, and removes dead letters acknowledged long ago.'),
  ('expire', '5 seconds', 10, true, false, 'trunkline_internal.duty_expire',
    'Ends jobs that have not started by their expires_at if no claim does it.'),
  ('promote', '5 seconds', 10, true, false, 'trunkline_internal.duty_promote',
    'Makes due jobs ready if no claim does it.'),
  ('reclaim', '15 seconds', 10, true, false, 'trunkline_internal.duty_reclaim',
    'Takes back jobs whose lease or hard limit is over or whose worker is gone.'),
  ('run_schedules', '1 second', 10, true, true, 'trunkline_internal.duty_run_schedules',
    'Enqueues the jobs of schedules that are due.'),
  ('sweep_idempotency', '10 minutes', 10, true, false, 'trunkline_internal.duty_sweep_idempotency',
    'Removes expired idempotency keys.'),
  ('sweep_buckets', '5 seconds', 10, true, false, 'trunkline_internal.duty_sweep_buckets',
    'Closes buckets without waiting jobs, and drops charges that no window counts any more.');

create table trunkline_internal.partitioned_tables (
  parent text primary key,
  unit text not null check (unit in ('day', 'week')),
  retention_setting text not null references trunkline_internal.settings (name)
);
comment on table trunkline_internal.partitioned_tables is 'Tables partitioned by time: the span of one partition, and the setting with its retention.';
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
comment on table trunkline_internal.partitions is 'Existing partitions with their bounds, so that no query has to parse the catalogue.';
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
comment on type trunkline.reclaimed_job is 'A job that reclaim took back: from which worker, why, and its new state.';

create type trunkline.duty_run as (duty text, ran boolean, rows integer, error text);
comment on type trunkline.duty_run is 'Whether a duty ran in this call, on how many rows, with which error.';

create type trunkline.health_check as ("check" text, ok boolean, detail jsonb);
comment on type trunkline.health_check is 'One check of health.';
