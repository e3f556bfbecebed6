-- Workers, and which of them sleep.

create table trunkline_internal.workers (
  worker text primary key check (worker <> '' and length(worker) <= 200),
  started_at timestamptz not null,
  seen_at timestamptz not null,
  pulse_interval interval not null check (pulse_interval > interval '0' and pulse_interval <= interval '1 hour'),
  state text not null default 'active' check (state in ('active', 'draining', 'gone', 'stopped')),
  host text,
  pid integer,
  version text,
  queues text[],
  tasks text[],
  detail jsonb,
  tenant text,
  signatures jsonb,
  check (seen_at >= started_at)
) with (fillfactor = 70);
comment on table trunkline_internal.workers is 'Worker processes; one lives while it is seen.';
comment on column trunkline_internal.workers.tenant is 'The tenant whose session registered it. Null: a session that acts for all tenants.';
comment on column trunkline_internal.workers.signatures is 'A fingerprint of the payload that its code takes, by task. Null: it reported none.';
alter table trunkline_internal.workers enable row level security, force row level security;
create policy owner_rows on trunkline_internal.workers to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.workers for select using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

-- Unlogged: a flag and no record. Setting it waits for no flush of the log, and a flag lost in a crash costs the sleeping
-- worker one poll.
create unlogged table trunkline_internal.sleepers (
  queue text not null check (queue <> '' and length(queue) <= 200),
  worker text not null check (worker <> '' and length(worker) <= 200),
  constraint sleepers_pkey primary key (queue, worker)
);
comment on table trunkline_internal.sleepers is 'Workers that are idle and want to be notified about new jobs of a queue; the queue * stands for all.';
alter table trunkline_internal.sleepers enable row level security, force row level security;
create policy owner_rows on trunkline_internal.sleepers to trunkline_owner using (true) with check (true);
