-- why: workflows: graphs of jobs with dependencies, their steps, and which workflow a job belongs to
-- breaking: no

alter table trunkline_internal.waiting
  add column workflow_id uuid, add column workflow_step integer, add column workflow_item integer;
alter table trunkline_internal.running
  add column workflow_id uuid, add column workflow_step integer, add column workflow_item integer;
alter table trunkline_internal.finished
  add column workflow_id uuid, add column workflow_step integer, add column workflow_item integer;
alter table trunkline_internal.dead
  add column workflow_id uuid, add column workflow_step integer, add column workflow_item integer;
comment on column trunkline_internal.waiting.workflow_id is 'The workflow that the job belongs to. Null for a plain job.';
comment on column trunkline_internal.waiting.workflow_step is 'The place of its step in the workflow, from 0.';
comment on column trunkline_internal.waiting.workflow_item is 'Its index within a set of jobs, from 0. Null if the step is a single job.';
-- A plain job is in none of them: the test for null costs nothing. The column is new, so each index starts empty.
-- squawk-ignore require-concurrent-index-creation
create index waiting_workflow on trunkline_internal.waiting (workflow_id, workflow_step) where workflow_id is not null;
-- squawk-ignore require-concurrent-index-creation
create index running_workflow on trunkline_internal.running (workflow_id, workflow_step) where workflow_id is not null;
-- squawk-ignore require-concurrent-index-creation
create index dead_workflow on trunkline_internal.dead (workflow_id, workflow_step) where workflow_id is not null;

alter type trunkline.claimed_job add attribute workflow_id uuid;
alter type trunkline.listed_job add attribute workflow_id uuid;
alter type trunkline.job_detail
  add attribute workflow_id uuid, add attribute workflow_step integer, add attribute workflow_item integer;

create table trunkline_internal.workflows (
  workflow_id uuid not null constraint workflows_pkey primary key,
  created_at timestamptz not null,
  ended_at timestamptz,
  deadline timestamptz,
  cancel_requested_at timestamptz,
  parent_job uuid,
  rerun_of uuid,
  jobs integer not null default 0,
  generation integer not null default 1,
  parent_attempt integer,
  depth smallint not null default 0,
  priority smallint,
  progress_mark smallint,
  detached boolean not null default false,
  kind text not null default 'workflow',
  name text not null,
  state text not null default 'live',
  tenant text,
  unique_key text,
  correlation_id text,
  reason text,
  tags text[],
  params jsonb,
  phases jsonb,
  on_completed jsonb,
  on_failure jsonb,
  on_cancel jsonb,
  callback_error jsonb,
  constraint workflows_are_sound check (
    kind = any ('{workflow,batch}')
    and state = any ('{live,completed,failed,cancelled}')
    and (state = 'live') = (ended_at is null)
    and tenant <> ''
    and generation >= 1
    and jobs >= 0
    and depth between 0 and 10
    and progress_mark between 0 and 100
  )
);
comment on table trunkline_internal.workflows is 'Graphs of jobs: one row for each, until its retention is over. Functions and views derive queued and running from live.';
comment on column trunkline_internal.workflows.jobs is 'How many jobs it has, with those of maps that have been expanded.';
comment on column trunkline_internal.workflows.generation is 'How often it was opened: 1, and one more for each retry after its end. Callbacks run once for each generation.';
comment on column trunkline_internal.workflows.progress_mark is 'The highest percentage that was shown; progress never falls below it.';
comment on column trunkline_internal.workflows.parent_job is 'The job that waits for it; null for a workflow that was started from outside.';
comment on column trunkline_internal.workflows.callback_error is 'Why the job of its callback could not be enqueued.';
comment on column trunkline_internal.workflows.rerun_of is 'The workflow whose completed steps it takes over.';
create index workflows_live on trunkline_internal.workflows (workflow_id) where ended_at is null;
create index workflows_deadline on trunkline_internal.workflows (deadline) where ended_at is null and deadline is not null;
create index workflows_ended on trunkline_internal.workflows (ended_at) where ended_at is not null;
create index workflows_parent on trunkline_internal.workflows (parent_job) where parent_job is not null;
create index workflows_rerun on trunkline_internal.workflows (rerun_of) where rerun_of is not null;
alter table trunkline_internal.workflows enable row level security, force row level security;
create policy owner_rows on trunkline_internal.workflows to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.workflows for select
  using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

create table trunkline_internal.workflow_steps (
  workflow_id uuid not null,
  place integer not null,
  map_over integer,
  items integer,
  expanded integer not null default 0,
  open_dependencies integer not null default 0,
  ended_at timestamptz,
  kind text not null,
  name text not null,
  state text not null,
  task text not null,
  phase text,
  reason text,
  after integer[] not null default '{}',
  dependants integer[] not null default '{}',
  request jsonb,
  result_of uuid,
  constraint workflow_steps_pkey primary key (workflow_id, place),
  constraint workflow_steps_by_name unique (workflow_id, name),
  constraint workflow_steps_are_sound check (
    kind = any ('{job,set,map}')
    and state = any ('{blocked,open,completed,failed,cancelled}')
    and (kind = 'map') = (map_over is not null)
    and expanded between 0 and coalesce(items, 0)
    and open_dependencies >= 0
  )
) with (fillfactor = 80);
comment on table trunkline_internal.workflow_steps is 'The named steps of workflows: one job, a set of jobs, or one job for each element of a result (map).';
comment on column trunkline_internal.workflow_steps.items is 'How many jobs it has; null for a map until the result it maps over is known.';
comment on column trunkline_internal.workflow_steps.expanded is 'How many of its jobs have been inserted.';
comment on column trunkline_internal.workflow_steps.after is 'Places of the steps that it waits for; dependants are those that wait for it.';
comment on column trunkline_internal.workflow_steps.open_dependencies is 'How many of the steps that it waits for have not completed.';
comment on column trunkline_internal.workflow_steps.request is 'Options and payload of each job of a map, and of a step that a retry has to insert again.';
comment on column trunkline_internal.workflow_steps.result_of is 'The workflow whose step of this name has the results; null: this one.';
create index workflow_steps_unexpanded on trunkline_internal.workflow_steps (workflow_id, place)
  where kind = 'map' and state = 'open' and (items is null or expanded < items);
create index workflow_steps_live on trunkline_internal.workflow_steps (workflow_id, place) where state in ('blocked', 'open');
alter table trunkline_internal.workflow_steps enable row level security, force row level security;
create policy owner_rows on trunkline_internal.workflow_steps to trunkline_owner using (true) with check (true);

-- Append-only except for replays, so that two ends never wait for each other's rows.
create table trunkline_internal.workflow_ends (
  workflow_id uuid not null,
  step integer not null,
  item integer not null,
  job_id uuid not null,
  finished_at timestamptz not null,
  state text not null check (state in ('completed', 'cancelled', 'dead')),
  result jsonb,
  cost_requests bigint,
  cost_tokens bigint,
  cost_units bigint,
  limit_ids integer[],
  bucket_ids bigint[],
  constraint workflow_ends_pkey primary key (workflow_id, step, item)
);
comment on table trunkline_internal.workflow_ends is 'One row for each job of a workflow that has ended. A replay removes the row of its job.';
comment on column trunkline_internal.workflow_ends.item is 'Index of the job within its step; 0 for a single job.';
comment on column trunkline_internal.workflow_ends.cost_requests is 'What a cancelled job would have cost, for a retry that inserts it again; likewise the columns after it.';
comment on column trunkline_internal.workflow_ends.result is 'The result, copied before its partition is dropped; null until then.';
alter table trunkline_internal.workflow_ends enable row level security, force row level security;
create policy owner_rows on trunkline_internal.workflow_ends to trunkline_owner using (true) with check (true);

create table trunkline_internal.workflow_keys (
  tenant text not null,
  kind text not null check (kind in ('unique', 'idempotency')),
  name text not null,
  key text not null,
  workflow_id uuid not null,
  expires_at timestamptz,
  graph_hash bigint,
  constraint workflow_keys_pkey primary key (tenant, kind, name, key)
);
comment on table trunkline_internal.workflow_keys is 'Unique keys of live workflows, within a tenant and name, and idempotency keys, until they expire. An empty tenant stands for none.';
create index workflow_keys_by_workflow on trunkline_internal.workflow_keys (workflow_id);
create index workflow_keys_by_expiry on trunkline_internal.workflow_keys (expires_at) where expires_at is not null;
alter table trunkline_internal.workflow_keys enable row level security, force row level security;
create policy owner_rows on trunkline_internal.workflow_keys to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.workflow_keys for select
  using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

-- No key: two marks of one workflow must not wait for each other.
create table trunkline_internal.workflow_marks (
  workflow_id uuid not null,
  marked_at timestamptz not null
);
comment on table trunkline_internal.workflow_marks is 'Workflows that a session left to the duty advance_workflows, because it could not lock them without waiting.';
alter table trunkline_internal.workflow_marks enable row level security, force row level security;
create policy owner_rows on trunkline_internal.workflow_marks to trunkline_owner using (true) with check (true);

create type trunkline_internal.workflow_end as (
  workflow_id uuid,
  step integer,
  item integer,
  job_id uuid,
  state text,
  cost_requests bigint,
  cost_tokens bigint,
  cost_units bigint,
  limit_ids integer[],
  bucket_ids bigint[]
);
comment on type trunkline_internal.workflow_end is 'A job of a workflow that has just ended, as end_workflow_jobs takes it.';

create type trunkline_internal.graph_step as (
  place integer,
  name text,
  task text,
  kind text,
  map_over integer,
  phase text,
  items integer,
  after integer[],
  dependants integer[],
  request jsonb
);
comment on type trunkline_internal.graph_step is 'A step of a graph after its document was checked.';

create type trunkline.started_workflow as (workflow_id uuid, created boolean, state text, jobs integer);
comment on type trunkline.started_workflow is 'Answer of start_workflow: the workflow, whether this call created it, its state and how many jobs it has.';

create type trunkline.changed_workflow as (workflow_id uuid, outcome text, state text, jobs integer);
comment on type trunkline.changed_workflow is 'What a request about one workflow did, its state, and to how many jobs.';

create type trunkline.dependency_result as (item integer, job_id uuid, result jsonb);
comment on type trunkline.dependency_result is 'The result of one job of a step that another step depends on, with its index in the step.';

insert into trunkline_internal.settings (name, kind, default_value, minimum, maximum, description) values
  ('max_workflow_jobs', 'integer', '10000', '1', '1000000', 'How many jobs one workflow may have, with those of its maps.'),
  ('workflow_retention', 'interval', '30 days', '1 day', '36500 days', 'How long a workflow is kept after its end.');

insert into trunkline_internal.duties (duty, every, run_order, builtin, needs_all_tenants, function, description) values
  ('advance_workflows', '5 seconds', 10, true, false, 'trunkline_internal.duty_advance_workflows',
    'Does what calls have left open in workflows, and stops those past their deadline.'),
  ('expand_workflows', '5 seconds', 10, true, true, 'trunkline_internal.duty_expand_workflows',
    'Inserts the jobs of maps whose source has completed.'),
  ('sweep_workflows', '10 minutes', 10, true, false, 'trunkline_internal.duty_sweep_workflows',
    'Removes workflows past their retention.');

insert into trunkline_internal.job_transitions (from_state, to_state, by_function) values
  ('none', 'ready', 'start_workflow'),
  ('none', 'scheduled', 'start_workflow'),
  ('none', 'blocked', 'start_workflow'),
  ('ready', 'blocked', 'start_workflow'),
  ('scheduled', 'blocked', 'start_workflow'),
  ('none', 'blocked', 'expand_workflows'),
  ('blocked', 'ready', 'expand_workflows'),
  ('blocked', 'scheduled', 'expand_workflows'),
  ('blocked', 'ready', 'complete'),
  ('blocked', 'scheduled', 'complete'),
  ('blocked', 'ready', 'advance_workflows'),
  ('blocked', 'scheduled', 'advance_workflows'),
  ('blocked', 'cancelled', 'complete'),
  ('blocked', 'cancelled', 'fail'),
  ('blocked', 'cancelled', 'snooze'),
  ('blocked', 'cancelled', 'release'),
  ('blocked', 'cancelled', 'hand_over'),
  ('blocked', 'cancelled', 'acknowledge_cancel'),
  ('blocked', 'cancelled', 'reclaim'),
  ('blocked', 'cancelled', 'sweep_buckets'),
  ('blocked', 'cancelled', 'cancel_workflow'),
  ('ready', 'cancelled', 'cancel_workflow'),
  ('scheduled', 'cancelled', 'cancel_workflow'),
  ('running', 'running', 'cancel_workflow'),
  ('blocked', 'cancelled', 'advance_workflows'),
  ('ready', 'cancelled', 'advance_workflows'),
  ('scheduled', 'cancelled', 'advance_workflows'),
  ('running', 'running', 'advance_workflows'),
  ('dead', 'ready', 'retry_workflow'),
  ('cancelled', 'blocked', 'retry_workflow'),
  ('cancelled', 'blocked', 'retry'),
  ('cancelled', 'blocked', 'retry_jobs'),
  ('cancelled', 'blocked', 'retry_edited'),
  ('none', 'ready', 'rerun_workflow'),
  ('none', 'scheduled', 'rerun_workflow'),
  ('none', 'blocked', 'rerun_workflow'),
  ('completed', 'none', 'delete_workflow'),
  ('cancelled', 'none', 'delete_workflow'),
  ('dead', 'none', 'delete_workflow');
