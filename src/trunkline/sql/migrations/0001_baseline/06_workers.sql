-- Workers and sleepers.

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
comment on table trunkline_internal.workers is 'Worker processes. A worker is alive while its pulses arrive.';
comment on column trunkline_internal.workers.tenant is 'The tenant of the session that registered the worker; null if that session acts for all tenants.';
comment on column trunkline_internal.workers.signatures is 'Fingerprints of the payloads that its code accepts, by task; null if it reported none.';
alter table trunkline_internal.workers enable row level security, force row level security;
create policy owner_rows on trunkline_internal.workers to trunkline_owner using (true) with check (true);
create policy tenant_rows on trunkline_internal.workers for select using (tenant = nullif(current_setting('trunkline.tenant', true), ''));

-- Unlogged, because a row is only a flag. Setting it waits for no WAL flush, and a flag lost in a crash costs the sleeping
-- worker one poll.
create unlogged table trunkline_internal.sleepers (
  queue text not null check (queue <> '' and length(queue) <= 200),
  worker text not null check (worker <> '' and length(worker) <= 200),
  constraint sleepers_pkey primary key (queue, worker)
);
comment on table trunkline_internal.sleepers is 'Idle workers that want to be notified about new jobs of a queue; queue * stands for all queues.';
alter table trunkline_internal.sleepers enable row level security, force row level security;
create policy owner_rows on trunkline_internal.sleepers to trunkline_owner using (true) with check (true);
