-- why: a handler that calls its provider late, with its own client, escapes the window of its charge, and nobody could see it
-- breaking: no

-- squawk-ignore-file require-concurrent-index-creation
-- squawk-ignore-file adding-field-with-default

alter type trunkline_internal.costly_attempt add attribute claimed_at timestamptz;

alter table trunkline_internal.spendings add column late boolean not null default false;
comment on column trunkline_internal.spendings.late is 'Whether the attempt held its charge for over a quarter of the limit''s shortest window and ended without acquire or a settlement: its call may have come late.';
create index spendings_late on trunkline_internal.spendings (xid) where late;

alter table trunkline_internal.spending_days add column late bigint not null default 0;
comment on column trunkline_internal.spending_days.late is 'How many of its attempts were late. Those of limits in requests alone are not among its calls.';
create index spending_days_late on trunkline_internal.spending_days (day) where late > 0;
