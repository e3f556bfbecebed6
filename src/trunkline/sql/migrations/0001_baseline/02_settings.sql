-- Settings of the engine.

create table trunkline_internal.settings (
  name text primary key,
  kind text not null check (kind in ('boolean', 'integer', 'interval', 'text')),
  default_value text not null,
  value text,
  minimum text,
  maximum text,
  description text not null,
  updated_at timestamptz,
  updated_by text,
  check ((value is null) = (updated_at is null))
);
comment on table trunkline_internal.settings is 'Settings of the engine: type, range, default and, if an operator has changed it, the current value.';
alter table trunkline_internal.settings enable row level security, force row level security;
create policy owner_rows on trunkline_internal.settings to trunkline_owner using (true) with check (true);
insert into trunkline_internal.settings (name, kind, default_value, minimum, maximum, description) values
  ('allow_unknown_tasks', 'boolean', 'false', null, null, 'Whether enqueue registers a task it does not know instead of refusing it.'),
  ('backpressure_delay', 'interval', '30 seconds', '1 second', '1 day', 'How long a worker snoozes a job whose provider has no capacity.'),
  ('claims_enabled', 'boolean', 'true', null, null, 'Maintenance switch: while false no job is claimed.'),
  ('crash_limit', 'integer', '3', '1', '1000',
    'How many worker deaths a job may cause before it becomes a dead letter; a task can override it.'),
  ('dead_retention', 'interval', '30 days', '30 days', '36500 days', 'How long a dead letter is kept after it was acknowledged.'),
  ('events_retention', 'interval', '365 days', '1 day', '36500 days', 'How long events are kept.'),
  ('finished_retention', 'interval', '30 days', '1 day', '36500 days', 'How long completed and cancelled jobs are kept.'),
  ('heartbeat_interval', 'interval', '30 seconds', '1 second', '1 day',
    'How often a worker extends the leases of its jobs. Three of these intervals must fit into the lease.'),
  ('idempotency_retention', 'interval', '7 days', '1 minute', '3650 days', 'How long an idempotency key is remembered.'),
  ('lease', 'interval', '300 seconds', '3 seconds', '365 days', 'Lease of tasks that do not set one.'),
  ('max_deferral_age', 'interval', '24 hours', '1 minute', '3650 days',
    'A job deferred for longer without progress is reported, and becomes a dead letter if its task says so.'),
  ('max_deferrals', 'integer', '20', '1', '1000000',
    'A job deferred more often in a row is reported, and becomes a dead letter if its task says so.'),
  ('max_immediate_releases', 'integer', '5', '0', '1000',
    'How often in a row a released job is ready again at once; after that it is deferred.'),
  ('max_payload_bytes', 'integer', '262144', '1024', '67108864', 'Largest payload or result, in bytes of stored JSON.'),
  ('partitions_ahead', 'interval', '7 days', '1 day', '90 days', 'How far ahead partitions are created.'),
  ('pulse_interval', 'interval', '5 seconds', '1 second', '1 hour', 'How often a worker process sends its pulse.'),
  ('pulse_misses', 'integer', '2', '1', '100', 'After how many missed pulses a worker counts as gone.'),
  ('reclaim_jitter', 'interval', '60 seconds', '0 seconds', '1 day',
    'A lost job is due again after a random time up to this, drawn per job in whole seconds.'),
  ('tenant_claim', 'text', 'tenant', null, null, 'The field of request.jwt.claims that names the tenant.');
