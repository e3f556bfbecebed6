-- Cron schedules as rows, so that they can be changed at run time.

create type trunkline_internal.cron_expression as (
  minutes integer[],
  hours integer[],
  days integer[],
  months integer[],
  weekdays integer[],
  last_day boolean,
  last_workday boolean,
  minute_starred boolean,
  hour_starred boolean,
  day_starred boolean,
  weekday_starred boolean
);
comment on type trunkline_internal.cron_expression is 'A parsed cron expression. Starred: the field begins with *, which decides how days combine and what happens when the clocks change.';

create table trunkline_internal.schedules (
  schedule text primary key check (schedule <> '' and length(schedule) <= 200),
  cron text not null check (length(cron) <= 1000),
  time_zone text not null default 'UTC' check (time_zone <> ''),
  task text not null check (task <> ''),
  payload jsonb not null default '{}' check (jsonb_typeof(payload) = 'object'),
  queue text check (queue <> ''),
  priority smallint check (priority between -50 and 49),
  tenant text check (tenant <> ''),
  missed text not null default 'once' check (missed in ('skip', 'once', 'all')),
  paused boolean not null default false,
  next_run_at timestamptz,
  last_run_at timestamptz,
  last_job_id uuid,
  last_error text,
  last_error_at timestamptz,
  skipped bigint not null default 0 check (skipped >= 0),
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint schedules_due_exactly_when_not_paused check (paused = (next_run_at is null)),
  constraint schedules_last_error_has_time check ((last_error is null) = (last_error_at is null)),
  constraint schedules_job_has_due_time check (last_job_id is null or last_run_at is not null)
) with (fillfactor = 70);
comment on table trunkline_internal.schedules is 'Cron schedules: which job to enqueue when, and what to do with missed due times.';
comment on column trunkline_internal.schedules.missed is 'What happens to due times found late: skip drops those older than a minute, once enqueues only the latest, all enqueues every one.';
comment on column trunkline_internal.schedules.next_run_at is 'The first due time not yet handled; it moves in the transaction that enqueues.';
comment on column trunkline_internal.schedules.last_run_at is 'The due time that was enqueued last, not the time of that enqueue.';
comment on column trunkline_internal.schedules.last_error is 'Why a due time could not be enqueued; cleared by the next successful enqueue, by a change and by resume.';
comment on column trunkline_internal.schedules.skipped is 'Number of due times dropped by the missed policy, counting at most 1000 per gap.';
create index schedules_due on trunkline_internal.schedules (next_run_at) where not paused;
alter table trunkline_internal.schedules enable row level security, force row level security;
create policy owner_rows on trunkline_internal.schedules to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.schedules for select using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

create type trunkline.schedule_change as (schedule text, created boolean, paused boolean, next_run_at timestamptz);
comment on type trunkline.schedule_change is 'Result of set_schedule, pause_schedule and resume_schedule: the current state of the schedule and whether this call created it.';

create type trunkline.schedule_run as (schedule text, due_at timestamptz, job_id uuid, error text);
comment on type trunkline.schedule_run is 'One due time that run_schedules handled: the job that it enqueued, or the error.';
