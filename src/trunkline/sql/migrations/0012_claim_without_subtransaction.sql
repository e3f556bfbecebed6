-- why: a claim was a subtransaction, and stored each row three times on its way to the answer
-- breaking: no

-- Part of claim now.
-- squawk-ignore ban-drop-function
drop function if exists trunkline_internal.start_attempts(text, tid[], uuid[], uuid[], interval, text[], jsonb, bigint, boolean);
