-- Returns the engine's current time. Functions read it once per call, and tests replace it; production has no switch for that.
create or replace function trunkline.clock()
returns timestamptz
language sql
volatile
as $$ select pg_catalog.clock_timestamp() $$;
comment on function trunkline.clock() is 'Returns the engine''s current time. Functions read it once per call, and tests replace it; production has no switch for that.';
