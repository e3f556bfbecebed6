-- why: a session that acts for one tenant could pause another tenant's limit by its template
-- breaking: no

-- squawk-ignore ban-drop-function
drop function if exists trunkline_internal.check_limit_scope(text, text, bigint, trunkline_internal.running);

comment on column trunkline_internal.spendings.late is 'Whether the attempt held its charge for over a quarter of the limit''s shortest window and ended without acquire or a settlement within that window: its call may have come late.';
