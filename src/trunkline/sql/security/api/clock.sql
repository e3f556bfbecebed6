-- The clock of the engine: every function reads it once, so that a test can replace it; production has no switch.
create or replace function trunkline.clock()
returns timestamptz
language sql
volatile
as $$ select pg_catalog.clock_timestamp() $$;
comment on function trunkline.clock() is 'The clock of the engine: every function reads it once, so that a test can replace it; production has no switch.';
