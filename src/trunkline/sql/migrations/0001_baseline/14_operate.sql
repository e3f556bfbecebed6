-- What operators search for and change: filters, labels of jobs, and the log of operators.

create type trunkline_internal.job_filter as (
  states text[],
  task text,
  queue text,
  tenant text,
  tag text,
  correlation_id text,
  unique_key text,
  error text,
  error_group text,
  acknowledged boolean,
  created_from timestamptz,
  created_before timestamptz,
  finished_from timestamptz,
  finished_before timestamptz,
  job_ids uuid[]
);
comment on type trunkline_internal.job_filter is 'A filter of jobs after its document was checked; null means any.';

create type trunkline_internal.job_matches as (job_ids uuid[], states text[], next uuid);
comment on type trunkline_internal.job_matches is 'Ids and states of jobs that match a filter, newest first, and the id before which the search continues; null at the end.';

create type trunkline.found_jobs as (jobs trunkline.listed_job[], next text);
comment on type trunkline.found_jobs is 'One page of jobs that match a filter, newest first, and the cursor of the next page; null after the last one.';

create type trunkline.state_count as (state text, jobs integer, more boolean);
comment on type trunkline.state_count is 'How many jobs in one state match a filter; with more, at least that many.';

-- The label is a hash of a tag or a correlation id. A search checks the job itself, so a collision costs one look-up. A job
-- keeps its labels while it moves from table to table. An index on tags in each table would be written at every move, and
-- cannot return the newest jobs of a tag that a million jobs have.
create table trunkline_internal.job_labels (
  label bigint not null,
  job_id uuid not null,
  constraint job_labels_pkey primary key (label, job_id)
);
comment on table trunkline_internal.job_labels is 'Tags and correlation ids of jobs as hashes, in the order in which searches return jobs. Jobs without either have no row.';
alter table trunkline_internal.job_labels enable row level security, force row level security;
create policy owner_rows on trunkline_internal.job_labels to trunkline_owner using (true) with check (true);
insert into trunkline_internal.duties (duty, every, run_order, builtin, needs_all_tenants, function, description) values
  ('sweep_labels', '10 minutes', 10, true, false, 'trunkline_internal.duty_sweep_labels',
    'Removes tags and correlation ids of jobs that no longer exist from the search index.');

create table trunkline_internal.operator_log (
  log_id bigint generated always as identity constraint operator_log_pkey primary key,
  at timestamptz not null,
  login text not null,
  actor text not null,
  action text not null,
  kind text not null,
  object text,
  tenant text,
  reason text,
  before jsonb,
  after jsonb
);
comment on table trunkline_internal.operator_log is 'What operators changed, append-only: one line for each call that changed something.';
comment on column trunkline_internal.operator_log.login is 'The session user, whom the server has authenticated.';
comment on column trunkline_internal.operator_log.actor is 'The person behind the login, as the client stated in trunkline.actor; otherwise the login.';
comment on column trunkline_internal.operator_log.tenant is 'The tenant of the changed job, schedule or worker. Null for what affects all tenants.';
comment on sequence trunkline_internal.operator_log_log_id_seq is 'Numbers of lines in the operator log.';
create index operator_log_by_time on trunkline_internal.operator_log (at);
alter table trunkline_internal.operator_log enable row level security, force row level security;
create policy owner_rows on trunkline_internal.operator_log to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.operator_log for select
  using (tenant = nullif(current_setting('trunkline.tenant', true), ''));
insert into trunkline_internal.settings (name, kind, default_value, minimum, maximum, description) values
  ('operator_log_retention', 'interval', '365 days', '1 day', '36500 days', 'How long the operator log is kept.');
insert into trunkline_internal.duties (duty, every, run_order, builtin, needs_all_tenants, function, description) values
  ('sweep_operator_log', '10 minutes', 10, true, false, 'trunkline_internal.duty_sweep_operator_log',
    'Removes lines of the operator log past their retention.');

create type trunkline.bulk_change as (jobs integer, outcomes jsonb, job_ids uuid[], next text);
comment on type trunkline.bulk_change is 'What one call of a bulk function did: how many jobs matched, how many had which outcome, the ids that were changed, and the cursor of the next call; null at the end.';

create type trunkline.dead_letter_group as (
  error_group text,
  pattern text,
  jobs integer,
  more boolean,
  first_died_at timestamptz,
  last_died_at timestamptz,
  tasks jsonb,
  sample_job uuid,
  sample_error jsonb
);
comment on type trunkline.dead_letter_group is 'Dead letters with the same error: how many, since when, of which tasks, and the newest of them; with more, at least that many.';

create type trunkline.activity as (
  at timestamptz,
  kind text,
  job_id uuid,
  state text,
  task text,
  queue text,
  tenant text,
  attempt integer,
  created_at timestamptz,
  run_at timestamptz,
  claimed_at timestamptz,
  finished_at timestamptz,
  worker text,
  reason text,
  last_error jsonb,
  detail jsonb
);
comment on type trunkline.activity is 'One row of recent_activity: a job (at is null), an event of a job, or the engine''s time (job_id is null).';
