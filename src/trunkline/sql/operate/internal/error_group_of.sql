-- Returns the group of an error: a hash of its pattern, 16 hexadecimal digits.
create or replace function trunkline_internal.error_group_of(p_error jsonb, p_reason text)
returns text
language sql
immutable
as $$
  select pg_catalog.lpad(
    pg_catalog.to_hex(
      pg_catalog.hashtextextended(trunkline_internal.error_pattern(p_error => p_error, p_reason => p_reason), 0)
    ), 16, '0'
  )
$$;
comment on function trunkline_internal.error_group_of(jsonb, text) is 'Returns the group of an error: a hash of its pattern, 16 hexadecimal digits.';
