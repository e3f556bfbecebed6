-- Breakers and the failures that they count.

create table trunkline_internal.breakers (
  bucket bigint not null constraint breakers_pkey primary key,
  limit_id integer not null,
  state text not null check (state in ('closed', 'open', 'half_open')),
  opened_at timestamptz,
  probe_at timestamptz,
  probe_job uuid,
  closed_at timestamptz,
  failures bigint,
  changed_at timestamptz not null,
  changed_by text not null,
  reason text
);
comment on table trunkline_internal.breakers is 'Breakers that have been open at least once. A bucket without a row has a closed breaker.';
comment on column trunkline_internal.breakers.probe_job is 'The one job that tests whether the provider works again.';
comment on column trunkline_internal.breakers.closed_at is 'When the breaker last closed; earlier failures no longer count.';
create index breakers_by_probe on trunkline_internal.breakers (probe_job) where probe_job is not null;
alter table trunkline_internal.breakers enable row level security, force row level security;
create policy owner_rows on trunkline_internal.breakers to trunkline_owner using (true) with check (true);

create table trunkline_internal.breaker_failures (
  bucket bigint not null,
  at timestamptz not null,
  job_id uuid not null,
  attempt integer not null
);
comment on table trunkline_internal.breaker_failures is 'Failed and lost attempts at buckets with a breaker, kept while they are within its window.';
create index breaker_failures_by_bucket on trunkline_internal.breaker_failures (bucket, at);
create index breaker_failures_by_time on trunkline_internal.breaker_failures (at);
alter table trunkline_internal.breaker_failures enable row level security, force row level security;
create policy owner_rows on trunkline_internal.breaker_failures to trunkline_owner using (true) with check (true);
