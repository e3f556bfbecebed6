-- The older in-process system: where new jobs go, and its jobs, which are read until they are drained.
-- requires: base
-- source: 2.11

create table if not exists studio.routing (
  only_row boolean primary key default true check (only_row),
  new_jobs text not null default 'queue' check (new_jobs in ('queue', 'legacy')),
  dual_read boolean not null default false
);
comment on table studio.routing is 'Whether new jobs start here or in the older system, and whether reads also return jobs of the older system. The steps of the cut-over change it.';
alter table studio.routing enable row level security;
alter table studio.routing force row level security;
drop policy if exists all_rows on studio.routing;
create policy all_rows on studio.routing using (true) with check (true);
insert into studio.routing default values on conflict do nothing;

create table if not exists studio.legacy_jobs (
  id uuid primary key,
  user_id text not null check (user_id <> ''),
  type text not null,
  status text not null check (status in ('queued', 'processing', 'complete', 'failed', 'cancelled')),
  progress jsonb not null default '{}',
  artifacts jsonb not null default '[]',
  created_at timestamptz not null
);
create index if not exists legacy_jobs_live on studio.legacy_jobs (id) where status in ('queued', 'processing');
comment on table studio.legacy_jobs is 'Jobs of the older system, which keeps them up to date until it has drained.';
alter table studio.legacy_jobs enable row level security;
alter table studio.legacy_jobs force row level security;
drop policy if exists service_rows on studio.legacy_jobs;
create policy service_rows on studio.legacy_jobs
to trunkline_owner, trunkline_producer, trunkline_operator using (true) with check (true);

create table if not exists studio.rollout_results (
  result bigint generated always as identity primary key,
  plan text not null check (plan in ('cutover', 'rollback')),
  step text not null,
  dry_run boolean not null,
  outcome text not null check (outcome in ('done', 'would_do', 'refused')),
  detail jsonb not null,
  evidence text,
  at timestamptz not null,
  actor text not null default session_user
);
create index if not exists rollout_results_by_step on studio.rollout_results (plan, step, result);
comment on table studio.rollout_results is 'Results of the steps of the cut-over and of the way back, with time and caller.';
alter table studio.rollout_results enable row level security;
alter table studio.rollout_results force row level security;
drop policy if exists service_only on studio.rollout_results;
create policy service_only on studio.rollout_results
to trunkline_owner, trunkline_operator, trunkline_reader using (true) with check (true);
