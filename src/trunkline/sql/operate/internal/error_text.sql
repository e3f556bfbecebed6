-- Returns the type and message of an error as one line of text, as lists show it.
create or replace function trunkline_internal.error_text(p_error jsonb)
returns text
language sql
immutable
as $$
  select pg_catalog.concat_ws(': ', p_error ->> 'type', p_error ->> 'message')
$$;
comment on function trunkline_internal.error_text(jsonb) is 'Returns the type and message of an error as one line of text, as lists show it.';
