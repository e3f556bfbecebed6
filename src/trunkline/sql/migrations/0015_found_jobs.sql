-- why: limited jobs were put together one by one, three times on their way through a claim: a third of its time
-- breaking: no

-- Nobody but the engine itself uses them.
-- squawk-ignore-file ban-drop-function, ban-drop-type
drop function if exists trunkline_internal.look_at_gates(text[], smallint[], integer, text[], text, timestamptz, pg_snapshot);
drop function if exists trunkline_internal.look_at_pools(text[], smallint[], integer, text[], text, timestamptz, bigint[], integer[]);
drop function if exists trunkline_internal.fit_all_gates(trunkline_internal.gated_job[], smallint[], timestamptz);
drop function if exists trunkline_internal.charge_gates(trunkline_internal.gated_job[], jsonb, pg_snapshot, timestamptz);
drop function if exists trunkline_internal.gate_room(bigint[], integer[], timestamptz, integer);
drop type if exists trunkline_internal.gated_job;

create type trunkline_internal.gate_charge as (
  gate bigint,
  limit_id integer,
  requests bigint,
  tokens bigint,
  units bigint,
  holders uuid[],
  starts integer
);
comment on type trunkline_internal.gate_charge is 'What is to be charged to a gate: sums, who holds a slot of it from now on, and how many of them are attempts that start.';

create type trunkline_internal.gate_left as (
  gate bigint,
  requests bigint,
  tokens bigint,
  units bigint,
  low_units bigint,
  slots bigint,
  quota_part integer,
  low_below integer,
  living uuid[]
);
comment on type trunkline_internal.gate_left is 'What a gate has left for a claim that holds it, as gate_room has it; null: no end of it. Who still holds a slot of it, where that had to be known.';

-- Lists that belong together one by one, since a list of numbers costs a fraction of a list of rows.
create type trunkline_internal.found_jobs as (
  tids tid[],
  jobs uuid[],
  places bigint[],
  sequences bigint[],
  keyed uuid[],
  first_day date,
  last_day date,
  held boolean,
  shares boolean,
  others integer,
  charges trunkline_internal.gate_charge[],
  rooms trunkline_internal.gate_left[]
);
comment on type trunkline_internal.found_jobs is 'Jobs that a claim has locked: where they are, and the places of their queues and lanes in the claim; which of them have a unique key; between which days their payloads are kept apart; whether the claim holds the gates of all of them, or seems to be able to share them; how many are not limited; what the limited ones take of their gates, in the order of these, where that is known; what the gates had left when they were looked at.';

-- Numbers are read out of it many times on a job's way: a short header would have it copied each time.
alter table trunkline_internal.waiting alter column need set storage plain;
alter table trunkline_internal.running alter column need set storage plain;

alter table trunkline_internal.gate_corrections add column holders uuid[];
alter table trunkline_internal.gate_corrections alter column holders set storage external;
comment on table trunkline_internal.gate_corrections is 'What was charged without holding the gate, and what turned out other than charged: differences, for the second that was charged.';
comment on column trunkline_internal.gate_corrections.holders is 'Jobs that were given a place, as in gate_states.';
