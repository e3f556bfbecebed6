-- why: a handler that asks for other child jobs than its earlier attempts has to be refused; a result that code cannot read waits for other code
-- breaking: no

alter table trunkline_internal.job_waits add column arguments_hash bigint;
comment on column trunkline_internal.job_waits.arguments_hash is 'Hash of the tasks and payloads of the child jobs; null for other waits, and for those from before this column.';

-- Internal, and has another argument from here on: the upgrade creates it again in this transaction.
-- squawk-ignore ban-drop-function
drop function if exists trunkline_internal.other_version(text, text, text, text, timestamptz);
