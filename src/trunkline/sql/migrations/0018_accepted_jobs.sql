-- why: what follows from a job that was taken was refused where new requests are, and the work before it was done again
-- breaking: no

-- They get one more argument, which create or replace cannot add.
-- squawk-ignore-file ban-drop-function
drop function if exists trunkline.enqueue(
  text, jsonb, text, integer, timestamptz, interval, text, text, text, text, integer, text[], jsonb
);
drop function if exists trunkline_internal.admit(bigint[], integer, timestamptz);
