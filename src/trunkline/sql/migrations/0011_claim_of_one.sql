-- why: the claim of an idle worker ran five statements in three functions for one job; it is two in two
-- breaking: no

-- Part of claim now.
-- squawk-ignore ban-drop-function
drop function if exists trunkline_internal.claim_few(text, text[], integer, text[], text);
-- It gets one more argument, which create or replace cannot add.
-- squawk-ignore ban-drop-function
drop function if exists trunkline_internal.start_attempts(text, tid[], uuid[], uuid[], interval, text[], jsonb, bigint);
