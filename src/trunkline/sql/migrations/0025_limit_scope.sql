-- why: a session that acts for one tenant could pause another tenant's limit by its template
-- breaking: no

-- squawk-ignore ban-drop-function
drop function if exists trunkline_internal.check_limit_scope(text, text, bigint, trunkline_internal.running);
