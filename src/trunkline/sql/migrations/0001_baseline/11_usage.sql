-- Quotas, grants, the usage ledger and estimates.

create table trunkline_internal.quota_hours (
  bucket bigint not null,
  hour bigint not null,
  amount bigint not null
);
comment on table trunkline_internal.quota_hours is 'What was charged to quotas, by hour since 1970. A claim adds a row; a duty merges the rows of an hour.';
create index quota_hours_by_bucket on trunkline_internal.quota_hours (bucket, hour);
alter table trunkline_internal.quota_hours enable row level security, force row level security;
create policy owner_rows on trunkline_internal.quota_hours to trunkline_owner using (true) with check (true);

create table trunkline_internal.grants (
  grant_id uuid not null constraint grants_pkey primary key,
  bucket bigint not null,
  limit_id integer not null,
  name text not null,
  job_id uuid,
  attempt integer,
  task text,
  tenant text,
  requests bigint not null,
  tokens bigint not null,
  units bigint not null,
  granted_at timestamptz not null,
  charged_at bigint not null,
  expires_at timestamptz not null,
  settled_at timestamptz,
  other_limit_ids integer[],
  other_bucket_ids bigint[]
);
comment on table trunkline_internal.grants is 'Capacity that acquire granted, within a job or outside. A grant of a job ends with its attempt.';
comment on column trunkline_internal.grants.other_limit_ids is 'Other limits of its job that have a quota and were charged the same amounts; null if there are none.';
comment on column trunkline_internal.grants.other_bucket_ids is 'The bucket of each of them, in the order of other_limit_ids.';
create index grants_by_expiry on trunkline_internal.grants (expires_at);
create index grants_by_job on trunkline_internal.grants (job_id) where job_id is not null;
alter table trunkline_internal.grants enable row level security, force row level security;
create policy owner_rows on trunkline_internal.grants to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.grants for select using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

create type trunkline.grant_answer as (
  granted boolean,
  grant_id uuid,
  reason text,
  free_at timestamptz,
  expires_at timestamptz
);
comment on type trunkline.grant_answer is 'The result of acquire: the grant, or why there is none and when to ask again.';

create table trunkline_internal.usage (
  at timestamptz not null,
  xid xid8 not null default pg_current_xact_id(),
  grant_id uuid,
  job_id uuid,
  attempt integer,
  bucket bigint not null,
  limit_id integer not null,
  task text,
  tenant text,
  requests bigint not null,
  tokens bigint not null,
  units bigint not null,
  cost numeric not null,
  late boolean not null default false
);
comment on table trunkline_internal.usage is 'The usage ledger: what was really used, one row for each settlement and bucket.';
comment on column trunkline_internal.usage.late is 'Whether the attempt held its charge for over a quarter of the limit''s shortest window and ended without acquire or a settlement within that window: its call may have come late.';
create unique index usage_of_attempt on trunkline_internal.usage (job_id, attempt, bucket) where grant_id is null;
create index usage_by_xid on trunkline_internal.usage (xid);
create index usage_by_time on trunkline_internal.usage (at);
-- Finds the rows of grants by their job; those of attempts are found by their unique index.
create index usage_by_job on trunkline_internal.usage (job_id) where grant_id is not null;
create index usage_late on trunkline_internal.usage (xid) where late;
alter table trunkline_internal.usage enable row level security, force row level security;
create policy owner_rows on trunkline_internal.usage to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.usage for select using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

create table trunkline_internal.usage_days (
  day date not null,
  limit_id integer not null,
  task text not null,
  tenant text not null,
  calls bigint not null,
  requests bigint not null,
  tokens bigint not null,
  units bigint not null,
  cost numeric not null,
  late bigint not null default 0,
  constraint usage_days_pkey primary key (day, limit_id, task, tenant)
);
comment on table trunkline_internal.usage_days is 'Daily sums of the usage ledger. An empty text stands for no task or tenant.';
comment on column trunkline_internal.usage_days.late is 'How many of its attempts were late. Those of limits in requests alone are not among its calls.';
create index usage_days_late on trunkline_internal.usage_days (day) where late > 0;
alter table trunkline_internal.usage_days enable row level security, force row level security;
create policy owner_rows on trunkline_internal.usage_days to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.usage_days
  for select using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

create table trunkline_internal.usage_roll (
  only_row boolean not null default true constraint usage_roll_pkey primary key check (only_row),
  rolled_below xid8 not null
);
comment on table trunkline_internal.usage_roll is 'Rows of usage of transactions below this bound are part of usage_days.';
alter table trunkline_internal.usage_roll enable row level security, force row level security;
create policy owner_rows on trunkline_internal.usage_roll to trunkline_owner using (true) with check (true);
insert into trunkline_internal.usage_roll (rolled_below) values ('0');

create type trunkline.job_usage as (
  "limit" text,
  name text,
  attempt integer,
  calls bigint,
  requests bigint,
  tokens bigint,
  units bigint,
  cost numeric
);
comment on type trunkline.job_usage is 'What an attempt of a job used of one limit, under its filled-in name.';

create type trunkline_internal.costly_attempt as (
  job_id uuid,
  attempt integer,
  task text,
  tenant text,
  cost_requests bigint,
  cost_tokens bigint,
  cost_units bigint,
  limit_ids integer[],
  bucket_ids bigint[],
  claimed_at timestamptz
);
comment on type trunkline_internal.costly_attempt is 'A limited attempt that ended, with its costs, limits and buckets.';

create table trunkline_internal.estimates (
  task text not null,
  bucket bigint not null,
  tokens bigint not null,
  units bigint not null,
  updated_at timestamptz not null,
  constraint estimates_pkey primary key (task, bucket)
);
comment on table trunkline_internal.estimates is 'What jobs of a task really used of a bucket: a moving average, starting with the first value.';
alter table trunkline_internal.estimates enable row level security, force row level security;
create policy owner_rows on trunkline_internal.estimates to trunkline_owner using (true) with check (true);
