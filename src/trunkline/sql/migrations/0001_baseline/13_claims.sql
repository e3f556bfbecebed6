-- What the steps of one claim pass to each other.

create type trunkline_internal.kept_position as (
  value jsonb,
  made_for text,
  snapshot pg_snapshot,
  kept boolean,
  behind boolean,
  moves boolean
);
comment on type trunkline_internal.kept_position is 'The position that a claim continues from: its value, the queues, tasks and tenant it was made for (as a hash), and the snapshot that decides which transactions have ended; whether the claim returns a position, scans only behind the given one, and may move it.';

create type trunkline_internal.lane_list as (
  asked text[],
  queues text[],
  lanes smallint[],
  names text[],
  floors bigint[],
  ceilings bigint[],
  enabled boolean,
  lease interval,
  audited boolean,
  limited boolean,
  due_until timestamptz
);
comment on type trunkline_internal.lane_list is 'The lanes that a claim scans, in this order: queue, lane and name of each, and the sequence numbers between which it scans; all queues the claim asked for; whether this worker may claim now; the default lease; whether any task is audited; whether any limited job waits; the due time up to which the claim promoted jobs.';

create type trunkline_internal.claim_batch as (
  tids tid[],
  jobs uuid[],
  keyed uuid[],
  first_day date,
  last_day date,
  lease interval,
  audited boolean,
  claimed_at timestamptz,
  position jsonb,
  bearer uuid,
  final boolean
);
comment on type trunkline_internal.claim_batch is 'Jobs that a claim has locked and may start: where they are, their ids and those with a unique key; between which days their large payloads are stored; the default lease; whether any task is audited; the time of the claim; the next position and the job that carries it; whether the claim needs no further search.';
