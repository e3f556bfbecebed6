-- Size in bytes up to which a payload or result moves with its job instead of being kept apart.
create or replace function trunkline_internal.inline_limit()
returns integer
language sql
immutable
as $$ select 1024 $$;
comment on function trunkline_internal.inline_limit() is 'Size in bytes up to which a payload or result moves with its job instead of being kept apart.';
