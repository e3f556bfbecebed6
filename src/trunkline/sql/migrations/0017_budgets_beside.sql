-- why: what a call really took reached the one limit it was asked for, and a tenant's budget beside it kept the estimate
-- breaking: no

alter table trunkline_internal.grants add column beside bigint[];
comment on column trunkline_internal.grants.beside is 'Other limits of its job that have a quota and were charged the same: limit and gate of each. Null: none.';

-- Lines of grants by their job; those of attempts are found by their unique index.
-- squawk-ignore require-concurrent-index-creation
create index spendings_by_job on trunkline_internal.spendings (job_id) where grant_id is not null;

create type trunkline.job_spending as (
  "limit" text,
  name text,
  attempt integer,
  calls bigint,
  requests bigint,
  tokens bigint,
  units bigint,
  cost numeric
);
comment on type trunkline.job_spending is 'What an attempt of a job took of one limit, under its name with the keys filled in.';

-- Nobody but the engine itself uses it: take_claim_charges has come in its place.
-- squawk-ignore-file ban-drop-function
drop function if exists trunkline_internal.take_claim_charge(trunkline_internal.running, bigint, integer, timestamptz);
