-- What the steps of one claim pass to each other.

create type trunkline_internal.lane_list as (
  position jsonb,
  made_for text,
  snapshot pg_snapshot,
  behind boolean,
  kept boolean,
  moves boolean,
  asked text[],
  queues text[],
  lanes smallint[],
  names text[],
  floors bigint[],
  ceilings bigint[],
  enabled boolean,
  lease interval,
  audited boolean,
  limited boolean
);
comment on type trunkline_internal.lane_list is 'The lanes that a claim scans. The position it continues from, a hash of the queues, tasks and tenant that belong to it, and the snapshot that decides which transactions have ended; whether the claim scans only behind this position, returns a position, and may move it. All queues it asked for. In the order of the scan the queue, lane and name of each lane and the sequence numbers between which it is scanned. Whether this worker may claim now; the default lease; whether any task is audited; whether any limited job waits.';

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
