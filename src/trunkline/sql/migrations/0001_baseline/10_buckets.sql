-- Limits with their keys filled in: which have jobs waiting, and what was charged to each.

-- Not unique: an enqueue that sees no open row adds one without waiting for another transaction.
create table trunkline_internal.bucket_queues (
  bucket bigint not null,
  limit_id integer not null,
  queue text not null,
  closing boolean not null default false,
  sealed_at_xid xid8
) with (fillfactor = 70);
comment on table trunkline_internal.bucket_queues is 'Which buckets may have jobs waiting, in which queues. A bucket is one limit with its keys filled in.';
comment on column trunkline_internal.bucket_queues.bucket is 'A hash of the name, so that the first job of a key needs no row that other transactions would wait for.';
comment on column trunkline_internal.bucket_queues.closing is 'The bucket was found empty. A transaction that sees this adds a row and does not rely on this one.';
comment on column trunkline_internal.bucket_queues.sealed_at_xid is 'Transactions from this id on have seen that it is closing. Once all earlier ones have ended and it is still empty, it is deleted.';
create index bucket_queues_by_bucket on trunkline_internal.bucket_queues (bucket, queue);
alter table trunkline_internal.bucket_queues enable row level security, force row level security;
create policy owner_rows on trunkline_internal.bucket_queues to trunkline_owner using (true) with check (true);

-- Not unique either, for the same reason.
create table trunkline_internal.bucket_names (
  bucket bigint not null,
  limit_id integer not null,
  name text not null check (name <> '' and octet_length(name) <= 400),
  seen_at timestamptz not null
);
comment on table trunkline_internal.bucket_names is 'Names of buckets, for people. The engine uses their numbers.';
create index bucket_names_by_bucket on trunkline_internal.bucket_names (bucket);
create index bucket_names_by_limit on trunkline_internal.bucket_names (limit_id);
alter table trunkline_internal.bucket_names enable row level security, force row level security;
create policy owner_rows on trunkline_internal.bucket_names to trunkline_owner using (true) with check (true);

create table trunkline_internal.bucket_states (
  bucket bigint not null,
  revision bigint not null,
  free_at timestamptz,
  computed_by timestamptz,
  holders uuid[],
  charged_at bigint[],
  charged_requests bigint[],
  charged_tokens bigint[],
  place jsonb,
  paused_until timestamptz,
  pause_reason text,
  spent bigint,
  spent_hour bigint,
  adjusted_below xid8,
  refused bigint,
  refused_at timestamptz,
  started_at bigint[],
  started bigint[],
  served xid8,
  constraint bucket_states_pkey primary key (bucket, revision)
);
comment on table trunkline_internal.bucket_states is 'What was charged to each bucket. Only the newest revision counts. A change inserts a revision and deletes the last one: updated in place under an old snapshot, the newest version would be slow to find.';
comment on column trunkline_internal.bucket_states.free_at is 'When it may have room again, as far as time alone decides; null for now.';
comment on column trunkline_internal.bucket_states.computed_by is 'When the limit that free_at was computed from was last changed. After another change free_at is void.';
comment on column trunkline_internal.bucket_states.holders is 'Jobs and grants that were given a slot. A slot counts as held only while its holder runs, so the end of an attempt frees it without a write.';
comment on column trunkline_internal.bucket_states.charged_at is 'The seconds of charges; those older than a minute are merged by the minute, under its last second.';
comment on column trunkline_internal.bucket_states.place is 'The cursor from which its lanes are scanned, in the format of a claim''s position.';
comment on column trunkline_internal.bucket_states.paused_until is 'A provider asked to wait until then.';
comment on column trunkline_internal.bucket_states.spent is 'What its quota counted in spent_hour; in another hour it is computed again.';
comment on column trunkline_internal.bucket_states.adjusted_below is 'Adjustments of transactions below this id are part of the charges.';
comment on column trunkline_internal.bucket_states.refused is 'How often acquire was refused.';
comment on column trunkline_internal.bucket_states.served is 'The last claim that charged it, kept for keys of a share group: the key served longest ago goes first.';
comment on column trunkline_internal.bucket_states.started_at is 'Minutes in which attempts started, kept if the limit has a breaker.';
-- Random numbers do not compress.
alter table trunkline_internal.bucket_states alter column holders set storage external;
alter table trunkline_internal.bucket_states enable row level security, force row level security;
create policy owner_rows on trunkline_internal.bucket_states to trunkline_owner using (true) with check (true);

-- Hints for the next claim, one meaning each: see begin_scan. Sequences, because a claim can set them without waiting and
-- without a row version. Unlogged, because logging would give a claim a transaction id before its first scan. A crash
-- resets the hints, and the next claim starts at the first bucket.
create unlogged sequence trunkline_internal.bucket_scan_cursor as bigint minvalue 0 start 0;
comment on sequence trunkline_internal.bucket_scan_cursor is 'The step at which the next claim starts to scan the buckets.';
create unlogged sequence trunkline_internal.bucket_scan_length as bigint minvalue 0 start 0;
comment on sequence trunkline_internal.bucket_scan_length is 'The number of steps that the last claim covered.';
create unlogged sequence trunkline_internal.bucket_scan_buckets as bigint minvalue 0 start 0;
comment on sequence trunkline_internal.bucket_scan_buckets is 'The number of buckets that the last claim used for a thousand jobs.';

-- Append-only, so that a settlement waits for no lock. The next transaction that holds the bucket adds the rows to its state.
create table trunkline_internal.bucket_adjustments (
  bucket bigint not null,
  xid xid8 not null default pg_current_xact_id(),
  at bigint not null,
  requests bigint not null,
  tokens bigint not null,
  units bigint not null,
  holders uuid[]
);
comment on table trunkline_internal.bucket_adjustments is 'Shared charges, and differences between charged and actual amounts, for the second that was charged.';
comment on column trunkline_internal.bucket_adjustments.holders is 'Jobs that were given a slot, as in bucket_states.';
alter table trunkline_internal.bucket_adjustments alter column holders set storage external;
create index bucket_adjustments_by_bucket on trunkline_internal.bucket_adjustments (bucket, xid);
alter table trunkline_internal.bucket_adjustments enable row level security, force row level security;
create policy owner_rows on trunkline_internal.bucket_adjustments to trunkline_owner using (true) with check (true);

create type trunkline_internal.window_sums as (
  requests_of_minute bigint,
  requests_of_hour bigint,
  tokens_of_minute bigint,
  tokens_of_hour bigint
);
comment on type trunkline_internal.window_sums is 'What the windows of a bucket count now. A window is two seconds longer than its name says: the second of the charge and the second within which a claimed job starts.';

create type trunkline_internal.bucket_charge as (
  bucket bigint,
  limit_id integer,
  requests bigint,
  tokens bigint,
  units bigint,
  holders uuid[],
  starts integer
);
comment on type trunkline_internal.bucket_charge is 'A charge to a bucket: sums, the new holders of its slots, and how many of them are attempts that start.';

create type trunkline_internal.room as (
  bucket bigint,
  requests bigint,
  tokens bigint,
  units bigint,
  low_units bigint,
  slots bigint,
  quota_unit text,
  low_below integer,
  living uuid[]
);
comment on type trunkline_internal.room is 'The room of a bucket for a claim that holds it, as in bucket_room; null means no bound. living lists its live holders, if they were checked.';

-- Strictest first, so that min() is right for several buckets.
create type trunkline_internal.bucket_locking as enum ('exclusive', 'deferred', 'shared');
comment on type trunkline_internal.bucket_locking is 'How a claim locks buckets: exclusive, before it reads their jobs; deferred, exclusively once it knows its charges; shared, once it knows its charges, alongside other claims.';

-- Parallel arrays: an array of numbers costs a fraction of an array of rows.
create type trunkline_internal.candidates as (
  tids tid[],
  jobs uuid[],
  places bigint[],
  sequences bigint[],
  keyed uuid[],
  first_day date,
  last_day date,
  locking text,
  moved boolean,
  others integer,
  charges trunkline_internal.bucket_charge[],
  rooms trunkline_internal.room[]
);
comment on type trunkline_internal.candidates is 'Jobs that a claim has locked: their row addresses, ids, and places of their queues and lanes in the claim; which of them have a unique key; the first and last day of payloads kept in bodies; how the claim locks their buckets, as in bucket_locking; whether others were moved to another lane or set aside; how many jobs are not limited; the charges of the limited jobs in the order of their buckets, if known; the room that the buckets had when they were read.';
