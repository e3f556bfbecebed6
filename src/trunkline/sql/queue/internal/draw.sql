-- Returns a random number of at least 0 and less than 1; every function uses it, so that a test can replace it.
-- The planner inlines it, so a call costs what random() costs. There is no switch for it in production.
create or replace function trunkline_internal.draw()
returns double precision
language sql
volatile
as $$
  select pg_catalog.random()
$$;
comment on function trunkline_internal.draw() is 'Returns a random number of at least 0 and less than 1; every function uses it, so that a test can replace it.';
