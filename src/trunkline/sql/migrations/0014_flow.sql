-- why: estimates become actuals, providers answer 429, budgets run out, calls break: all of it is decided at the same gates
-- breaking: no

-- Limits are few, and nobody but an operator writes them.
-- squawk-ignore-file adding-field-with-default, constraint-missing-not-valid

alter table trunkline_internal.limits
  add column quota bigint check (quota >= 0),
  add column quota_unit text check (quota_unit <> '' and length(quota_unit) <= 50),
  add column quota_window interval check (quota_window >= interval '1 hour' and quota_window <= interval '366 days'),
  add column quota_period text check (quota_period in ('day', 'month')),
  add column quota_buffer numeric(5, 4) check (quota_buffer > 0 and quota_buffer <= 1),
  add column quota_low_share numeric(5, 4) check (quota_low_share >= 0 and quota_low_share <= 1),
  add column quota_low_below smallint,
  add column quota_refuses boolean not null default true,
  add column breaker_failures integer check (breaker_failures >= 1),
  add column breaker_share numeric(5, 4) check (breaker_share >= 0 and breaker_share <= 1),
  add column breaker_window interval check (breaker_window >= interval '1 minute' and breaker_window <= interval '1 day'),
  add column breaker_probe_after interval check (breaker_probe_after >= interval '1 second' and breaker_probe_after <= interval '1 day'),
  add column backpressure_threshold numeric(3, 2) check (backpressure_threshold > 0 and backpressure_threshold <= 1),
  add column backpressure_delay interval check (backpressure_delay >= interval '0' and backpressure_delay <= interval '1 day'),
  add column depth_limit integer check (depth_limit >= 0),
  add column depth_refuses boolean not null default true,
  add column weight integer check (weight between 1 and 1000),
  add column share_cap integer check (share_cap >= 1),
  add column declared jsonb,
  add column pool text generated always as (case when name like 'fair:%' then split_part(name, '/', 1) end) stored,
  add constraint limits_quota_complete check (
    quota is null or (quota_unit is not null and quota_buffer is not null and num_nonnulls(quota_window, quota_period) = 1)
  ),
  add constraint limits_breaker_complete check (
    breaker_failures is null or num_nonnulls(breaker_share, breaker_window, breaker_probe_after) = 3
  );
comment on column trunkline_internal.limits.quota is 'How much within quota_window, which rolls by the hour, or within the calendar''s quota_period: a budget.';
comment on column trunkline_internal.limits.quota_unit is 'What the quota counts: requests, tokens, or any other word for a job''s units.';
comment on column trunkline_internal.limits.quota_buffer is 'Which share of the quota is given out, since estimates can be wrong.';
comment on column trunkline_internal.limits.quota_low_share is 'From this share on, priorities below quota_low_below stop.';
comment on column trunkline_internal.limits.breaker_failures is 'So many failed attempts within breaker_window, and at least breaker_share of all, open the breaker. Null: there is none.';
comment on column trunkline_internal.limits.backpressure_threshold is 'Above this share of the minute new jobs are put off by backpressure_delay.';
comment on column trunkline_internal.limits.share_cap is 'Most that one key of a pool runs while others of it wait.';
comment on column trunkline_internal.limits.declared is 'What the code of a task last said about it: only what changes there is set again.';
comment on column trunkline_internal.limits.pool is 'Keys of one pool share what its workers can do.';

alter table trunkline_internal.gate_states
  add column held_until timestamptz,
  add column held_reason text,
  add column spent bigint,
  add column spent_hour bigint,
  add column corrected_below xid8,
  add column refused bigint,
  add column refused_at timestamptz,
  add column started_at bigint[],
  add column started bigint[],
  add column served xid8;
-- Random numbers: to compress them takes time and gains nothing.
alter table trunkline_internal.gate_states alter column holders set storage external;
comment on column trunkline_internal.gate_states.held_until is 'The provider said so: nothing before.';
comment on column trunkline_internal.gate_states.spent is 'What its quota has given out in the window as it was in spent_hour; another hour counts anew.';
comment on column trunkline_internal.gate_states.corrected_below is 'Corrections of transactions below this id are part of the charges.';
comment on column trunkline_internal.gate_states.refused is 'How often acquire was refused.';
comment on column trunkline_internal.gate_states.served is 'The last claim that gave it something, kept for keys of a pool: who waits longest goes first.';
comment on column trunkline_internal.gate_states.started_at is 'Minutes in which attempts were started, kept where there is a breaker.';

-- Only ever added to: who settles waits for nobody. Whoever holds the gate next counts them in.
create table trunkline_internal.gate_corrections (
  gate bigint not null,
  xid xid8 not null default pg_current_xact_id(),
  at bigint not null,
  requests bigint not null,
  tokens bigint not null,
  units bigint not null
);
comment on table trunkline_internal.gate_corrections is 'What turned out other than charged: differences, for the second that was charged.';
create index gate_corrections_by_gate on trunkline_internal.gate_corrections (gate, xid);
alter table trunkline_internal.gate_corrections enable row level security, force row level security;
create policy owner_rows on trunkline_internal.gate_corrections to trunkline_owner using (true) with check (true);

create table trunkline_internal.quota_hours (
  gate bigint not null,
  hour bigint not null,
  amount bigint not null
);
comment on table trunkline_internal.quota_hours is 'What was taken of quotas, by hour since 1970; a claim adds a row, a duty puts the rows of an hour together.';
create index quota_hours_by_gate on trunkline_internal.quota_hours (gate, hour);
alter table trunkline_internal.quota_hours enable row level security, force row level security;
create policy owner_rows on trunkline_internal.quota_hours to trunkline_owner using (true) with check (true);

create table trunkline_internal.grants (
  grant_id uuid not null constraint grants_pkey primary key,
  gate bigint not null,
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
  settled_at timestamptz
);
comment on table trunkline_internal.grants is 'What was asked for by name, within a job or without. One of a job ends with its attempt.';
create index grants_by_expiry on trunkline_internal.grants (expires_at);
create index grants_by_job on trunkline_internal.grants (job_id) where job_id is not null;
alter table trunkline_internal.grants enable row level security, force row level security;
create policy owner_rows on trunkline_internal.grants to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.grants for select using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

create table trunkline_internal.spendings (
  at timestamptz not null,
  xid xid8 not null default pg_current_xact_id(),
  grant_id uuid,
  job_id uuid,
  attempt integer,
  gate bigint not null,
  limit_id integer not null,
  task text,
  tenant text,
  requests bigint not null,
  tokens bigint not null,
  units bigint not null,
  cost numeric not null
);
comment on table trunkline_internal.spendings is 'What was really used, one row for each settlement and gate: the books of jobs.';
create unique index spendings_of_attempt on trunkline_internal.spendings (job_id, attempt, gate) where grant_id is null;
create index spendings_by_xid on trunkline_internal.spendings (xid);
create index spendings_by_time on trunkline_internal.spendings (at);
alter table trunkline_internal.spendings enable row level security, force row level security;
create policy owner_rows on trunkline_internal.spendings to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.spendings for select using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

create table trunkline_internal.spending_days (
  day date not null,
  limit_id integer not null,
  task text not null,
  tenant text not null,
  calls bigint not null,
  requests bigint not null,
  tokens bigint not null,
  units bigint not null,
  cost numeric not null,
  constraint spending_days_pkey primary key (day, limit_id, task, tenant)
);
comment on table trunkline_internal.spending_days is 'Spendings put together by day; no task or tenant is the empty text.';
alter table trunkline_internal.spending_days enable row level security, force row level security;
create policy owner_rows on trunkline_internal.spending_days to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.spending_days
  for select using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

create table trunkline_internal.spending_roll (
  only_row boolean not null default true constraint spending_roll_pkey primary key check (only_row),
  rolled_below xid8 not null
);
comment on table trunkline_internal.spending_roll is 'Up to which transaction spendings are part of spending_days.';
alter table trunkline_internal.spending_roll enable row level security, force row level security;
create policy owner_rows on trunkline_internal.spending_roll to trunkline_owner using (true) with check (true);
insert into trunkline_internal.spending_roll (rolled_below) values ('0');

create table trunkline_internal.estimates (
  task text not null,
  gate bigint not null,
  tokens bigint not null,
  units bigint not null,
  updated_at timestamptz not null,
  constraint estimates_pkey primary key (task, gate)
);
comment on table trunkline_internal.estimates is 'What jobs of a task turned out to take of a gate: a moving average, begun with the first of them.';
alter table trunkline_internal.estimates enable row level security, force row level security;
create policy owner_rows on trunkline_internal.estimates to trunkline_owner using (true) with check (true);

create table trunkline_internal.breakers (
  gate bigint not null constraint breakers_pkey primary key,
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
comment on table trunkline_internal.breakers is 'Breakers that were open once. A gate without a row is closed.';
comment on column trunkline_internal.breakers.probe_job is 'The one job that tries whether it works again.';
comment on column trunkline_internal.breakers.closed_at is 'Failures before it do not count any more.';
create index breakers_by_probe on trunkline_internal.breakers (probe_job) where probe_job is not null;
alter table trunkline_internal.breakers enable row level security, force row level security;
create policy owner_rows on trunkline_internal.breakers to trunkline_owner using (true) with check (true);

create table trunkline_internal.breaker_failures (
  gate bigint not null,
  at timestamptz not null,
  job_id uuid not null,
  attempt integer not null
);
comment on table trunkline_internal.breaker_failures is 'Failed and lost attempts at gates with a breaker, for as long as its window sees them.';
create index breaker_failures_by_gate on trunkline_internal.breaker_failures (gate, at);
create index breaker_failures_by_time on trunkline_internal.breaker_failures (at);
alter table trunkline_internal.breaker_failures enable row level security, force row level security;
create policy owner_rows on trunkline_internal.breaker_failures to trunkline_owner using (true) with check (true);

-- A third number: what is taken of quotas that count neither requests nor tokens.
update trunkline_internal.waiting as w set need = w.need[1:2] || 0::bigint || w.need[3:] where w.need is not null;
update trunkline_internal.running as r set need = r.need[1:2] || 0::bigint || r.need[3:] where r.need is not null;
update trunkline_internal.dead as d set need = d.need[1:2] || 0::bigint || d.need[3:] where d.need is not null;
comment on column trunkline_internal.waiting.need is 'What it takes of its limits: requests, tokens, units, then limit and gate of each. Null: not limited.';

-- How many wait for a gate is asked for where it has a depth limit.
-- squawk-ignore require-concurrent-index-creation
create index waiting_gated_later on trunkline_internal.waiting (gate) where state = 'scheduled' and gate is not null;

insert into trunkline_internal.job_transitions (from_state, to_state, by_function) values ('ready', 'dead', 'sweep_gates');

alter table trunkline_internal.queues add column ageing boolean not null default false;
comment on column trunkline_internal.queues.ageing is 'Whether one of sixteen claims serves its lanes from the lowest, so that none starves.';

alter type trunkline.claimed_job add attribute start_by timestamptz;

create type trunkline.grant_answer as (
  granted boolean,
  grant_id uuid,
  reason text,
  free_at timestamptz,
  expires_at timestamptz
);
comment on type trunkline.grant_answer is 'What acquire answers: the grant, or why there is none and when to ask again.';

create type trunkline_internal.costly_attempt as (job_id uuid, attempt integer, task text, tenant text, need bigint[]);
comment on type trunkline_internal.costly_attempt is 'An attempt that ended and had charged tokens or units.';

-- They get more arguments or columns, which create or replace cannot add.
-- squawk-ignore-file ban-drop-function, ban-drop-view
drop function if exists trunkline_internal.gate_room(bigint[], integer[], timestamptz);
drop view if exists trunkline.limits;
drop view if exists trunkline.gates;
drop function if exists trunkline_internal.charge_gate(
  trunkline_internal.limits, trunkline_internal.gate_states, bigint, bigint, timestamptz
);
drop function if exists trunkline_internal.fit_all_gates(trunkline_internal.gated_job[], timestamptz);
drop function if exists trunkline_internal.resolve_need(text, text[], jsonb, jsonb, text);
drop function if exists trunkline_internal.never_fits(trunkline_internal.limits, bigint, bigint);
drop function if exists trunkline.claim(text, text[], integer, text[], jsonb);
