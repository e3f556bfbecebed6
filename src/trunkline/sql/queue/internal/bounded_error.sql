-- Converts an error that a worker reports into an object of bounded size, with long texts truncated, so that jobs stay small.
create or replace function trunkline_internal.bounded_error(p_error jsonb, p_bytes integer)
returns jsonb
language sql
immutable
as $$
  select case
    when p_error is null then null
    when pg_catalog.jsonb_typeof(p_error) = 'object' and pg_catalog.octet_length(p_error::text) <= p_bytes then p_error
    when pg_catalog.jsonb_typeof(p_error) = 'object' then pg_catalog.jsonb_strip_nulls(pg_catalog.jsonb_build_object(
      'type', pg_catalog.left(p_error ->> 'type', 200),
      'code', pg_catalog.left(p_error ->> 'code', 100),
      'message', pg_catalog.left(coalesce(p_error ->> 'message', p_error::text), p_bytes / 4),
      'value', pg_catalog.left(p_error ->> 'value', p_bytes / 4),
      'truncated', true
    ))
    else pg_catalog.jsonb_build_object('message', pg_catalog.left(p_error #>> '{}', p_bytes / 4))
  end
$$;
comment on function trunkline_internal.bounded_error(jsonb, integer) is 'Converts an error that a worker reports into an object of bounded size, with long texts truncated, so that jobs stay small.';
