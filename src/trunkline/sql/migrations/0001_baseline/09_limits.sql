-- What providers allow, and jobs that cost more than their limit can ever allow.

create table trunkline_internal.limits (
  limit_id integer generated always as identity primary key,
  name text not null constraint limits_name_key unique check (name <> '' and octet_length(name) <= 200),
  bucket bigint not null generated always as (hashtextextended(name, 0)) stored constraint limits_bucket_key unique,
  requests_per_minute bigint check (requests_per_minute >= 0),
  requests_per_hour bigint check (requests_per_hour >= 0),
  tokens_per_minute bigint check (tokens_per_minute >= 0),
  tokens_per_hour bigint check (tokens_per_hour >= 0),
  concurrency integer check (concurrency >= 0),
  status text not null default 'active' check (status in ('active', 'maintenance', 'disabled')),
  reason text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  updated_by text not null,
  quota bigint check (quota >= 0),
  quota_unit text check (quota_unit <> '' and length(quota_unit) <= 50),
  quota_window interval check (quota_window >= interval '1 hour' and quota_window <= interval '366 days'),
  quota_period text check (quota_period in ('day', 'month')),
  quota_buffer numeric(5, 4) check (quota_buffer > 0 and quota_buffer <= 1),
  quota_low_share numeric(5, 4) check (quota_low_share >= 0 and quota_low_share <= 1),
  quota_low_below smallint,
  quota_refuses boolean not null default true,
  breaker_failures integer check (breaker_failures >= 1),
  breaker_share numeric(5, 4) check (breaker_share >= 0 and breaker_share <= 1),
  breaker_window interval check (breaker_window >= interval '1 minute' and breaker_window <= interval '1 day'),
  breaker_probe_after interval check (breaker_probe_after >= interval '1 second' and breaker_probe_after <= interval '1 day'),
  backpressure_threshold numeric(3, 2) check (backpressure_threshold > 0 and backpressure_threshold <= 1),
  backpressure_delay interval check (backpressure_delay >= interval '0' and backpressure_delay <= interval '1 day'),
  depth_limit integer check (depth_limit >= 0),
  depth_refuses boolean not null default true,
  weight integer check (weight between 1 and 1000),
  share_cap integer check (share_cap >= 1),
  declared jsonb,
  share_group text generated always as (case when name like 'fair:%' then split_part(name, '/', 1) end) stored,
  -- Repeats the condition of share group, because a generated column cannot use another one.
  slots_only boolean not null generated always as (
    concurrency is not null
    and name not like 'fair:%'
    and num_nonnulls(requests_per_minute, requests_per_hour, tokens_per_minute, tokens_per_hour, quota, breaker_failures) = 0
  ) stored,
  constraint limits_quota_complete check (
    quota is null or (quota_unit is not null and quota_buffer is not null and num_nonnulls(quota_window, quota_period) = 1)
  ),
  constraint limits_breaker_complete check (
    breaker_failures is null or num_nonnulls(breaker_share, breaker_window, breaker_probe_after) = 3
  )
);
comment on table trunkline_internal.limits is 'What a provider allows. A name with {keys} is a separate limit for each value of them. Parts that are null are not limited.';
comment on column trunkline_internal.limits.quota is 'How much within quota_window, which rolls by the hour, or within the calendar''s quota_period: a budget.';
comment on column trunkline_internal.limits.quota_unit is 'What the quota counts: requests, tokens, or any other word for a job''s units.';
comment on column trunkline_internal.limits.quota_buffer is 'Which share of the quota is given out, since estimates can be wrong.';
comment on column trunkline_internal.limits.quota_low_share is 'From this share on, priorities below quota_low_below stop.';
comment on column trunkline_internal.limits.breaker_failures is 'So many failed attempts within breaker_window, and at least breaker_share of all, open the breaker. Null: there is none.';
comment on column trunkline_internal.limits.backpressure_threshold is 'Above this share of the minute new jobs are deferred by backpressure_delay.';
comment on column trunkline_internal.limits.share_cap is 'Most that one key of a share group runs while others of it wait.';
comment on column trunkline_internal.limits.declared is 'The last declaration in the code of a task. Only parts that change there are set again.';
comment on column trunkline_internal.limits.share_group is 'Keys of one share group share its workers fairly.';
comment on column trunkline_internal.limits.slots_only is 'True if it counts slots only. free_slots and charge_slots serve such limits faster.';
comment on sequence trunkline_internal.limits_limit_id_seq is 'Numbers of limits, as in limit_ids of jobs.';
alter table trunkline_internal.limits enable row level security, force row level security;
create policy owner_rows on trunkline_internal.limits to trunkline_owner using (true) with check (true);

create table trunkline_internal.limit_templates (
  singleton boolean not null default true constraint limit_templates_pkey primary key check (singleton),
  revision bigint not null default 0
);
comment on table trunkline_internal.limit_templates is 'One row that a session updates before it adds a limit name with keys, so that sessions check such names in turn.';
comment on column trunkline_internal.limit_templates.revision is 'Grows with each name, so that a transaction with an older snapshot fails instead of missing the last one.';
alter table trunkline_internal.limit_templates enable row level security, force row level security;
create policy owner_rows on trunkline_internal.limit_templates to trunkline_owner using (true) with check (true);
insert into trunkline_internal.limit_templates default values;

-- Separate from waiting: claims and enqueues do not touch it while no job is set aside.
create table trunkline_internal.set_aside (
  job_id uuid not null constraint set_aside_pkey primary key,
  bucket bigint not null,
  limit_id integer not null,
  unit text not null check (unit in ('requests', 'tokens', 'units')),
  cost bigint not null,
  sequence bigint not null,
  since timestamptz not null,
  queue text not null,
  task text not null
);
comment on table trunkline_internal.set_aside is 'Jobs in state blocked that cost more than one of their limits can ever allow; they are freed when it gives enough.';
comment on column trunkline_internal.set_aside.bucket is 'The bucket that is too small, which need not be the one in whose lane the job waited.';
comment on column trunkline_internal.set_aside.limit_id is 'The limit that the job was enqueued under; one with the bucket''s own name takes precedence.';
comment on column trunkline_internal.set_aside.unit is 'The part of its cost that is too large: requests, tokens or units.';
comment on column trunkline_internal.set_aside.sequence is 'Its place in the lane, which it returns to.';
create index set_aside_by_cost on trunkline_internal.set_aside (bucket, unit, cost, sequence);
create index set_aside_by_age on trunkline_internal.set_aside (task, since);
create index set_aside_by_time on trunkline_internal.set_aside (since);
create index set_aside_by_queue on trunkline_internal.set_aside (queue);
alter table trunkline_internal.set_aside enable row level security, force row level security;
create policy owner_rows on trunkline_internal.set_aside to trunkline_owner using (true) with check (true);

create type trunkline_internal.amounts as (requests bigint, tokens bigint, units bigint);
comment on type trunkline_internal.amounts is 'Requests, tokens and units that belong together: a cost, or the most that a limit gives at once.';

create type trunkline_internal.job_cost as (requests bigint, tokens bigint, units bigint, limit_ids integer[], bucket_ids bigint[]);
comment on type trunkline_internal.job_cost is 'What a job costs, and its limits with the bucket of each, as the columns of waiting have it. For passing between functions.';
