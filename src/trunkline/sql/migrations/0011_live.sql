-- why: clients follow jobs and workflows, and handlers emit partial output that followers read while the job runs
-- breaking: no

-- Unlogged like sleepers: a row is only a flag, and a follower sets it again every minute.
create unlogged table trunkline_internal.followed (
  followed_id uuid not null,
  until timestamptz not null,
  kind text not null check (kind in ('job', 'workflow')),
  constraint followed_pkey primary key (followed_id)
);
comment on table trunkline_internal.followed is 'Jobs and workflows that somebody follows: their changes notify channel trunkline_live.';
comment on column trunkline_internal.followed.until is 'When the flag expires unless a follower renews it.';
create index followed_by_until on trunkline_internal.followed (until);
alter table trunkline_internal.followed enable row level security, force row level security;
create policy owner_rows on trunkline_internal.followed to trunkline_owner using (true) with check (true);

create table trunkline_internal.emitted_chunks (
  job_id uuid not null,
  emitted_at timestamptz not null,
  attempt integer not null,
  number integer not null check (number > 0),
  bytes integer not null check (bytes between 1 and 1048576),
  tenant text,
  chunk text not null check (chunk <> ''),
  constraint emitted_chunks_pkey primary key (job_id, attempt, number)
);
comment on table trunkline_internal.emitted_chunks is 'Partial output of attempts, as ctx.emit wrote it, kept for emitted_retention after the end of the job.';
comment on column trunkline_internal.emitted_chunks.number is 'The place of the chunk within the attempt, from 1.';
comment on column trunkline_internal.emitted_chunks.bytes is 'The bytes of this chunk and all chunks of the attempt before it.';
create index emitted_chunks_by_time on trunkline_internal.emitted_chunks (emitted_at) where number = 1;
alter table trunkline_internal.emitted_chunks enable row level security, force row level security;
create policy owner_rows on trunkline_internal.emitted_chunks to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.emitted_chunks for select
  using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

create type trunkline.live_job as (
  job_id uuid,
  task text,
  state text,
  attempt integer,
  progress integer,
  phase text,
  message text,
  reason text,
  tenant text,
  run_at timestamptz,
  finished_at timestamptz,
  workflow_id uuid,
  chunks text,
  chunk_number integer,
  has_more boolean
);
comment on type trunkline.live_job is 'The present state of a job for those who follow it, with the output that its attempt emitted after an offset.';

create type trunkline.live_workflow as (
  workflow_id uuid,
  name text,
  state text,
  generation integer,
  percent integer,
  phase text,
  message text,
  reason text,
  tenant text,
  jobs integer,
  ended_at timestamptz
);
comment on type trunkline.live_workflow is 'The present state of a workflow for those who follow it.';

insert into trunkline_internal.settings (name, kind, default_value, minimum, maximum, description) values
  ('emitted_retention', 'interval', '1 hour', '1 minute', '7 days', 'How long emitted output is kept after the end of its job.');

insert into trunkline_internal.duties (duty, every, run_order, builtin, needs_all_tenants, function, description) values
  ('sweep_live', '1 minute', 10, true, false, 'trunkline_internal.duty_sweep_live',
    'Removes expired flags of followers, and emitted output past emitted_retention.');
