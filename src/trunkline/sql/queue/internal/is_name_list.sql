-- Returns whether an array can be a list of queues or tasks: one dimension, at most 10000 names and 1 MB. Null is valid.
create or replace function trunkline_internal.is_name_list(p_names text[])
returns boolean
language sql
immutable
parallel safe
as $$
  select coalesce(
    pg_catalog.array_ndims(p_names) = 1
      and pg_catalog.cardinality(p_names) <= 10000
      and pg_catalog.pg_column_size(p_names) <= 1048576,
    true
  )
$$;
comment on function trunkline_internal.is_name_list(text[]) is 'Returns whether an array can be a list of queues or tasks: one dimension, at most 10000 names and 1 MB. Null is valid.';
