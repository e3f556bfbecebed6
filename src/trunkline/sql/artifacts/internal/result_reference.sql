-- Returns the artifact that a stored result refers to, or null if it is a plain result.
-- A handler may return such a value itself. So the caller checks that the artifact is a result of the same job.
create or replace function trunkline_internal.result_reference(p_result jsonb)
returns uuid
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    -- Large values are not read.
    when pg_column_size(p_result) < 200
      and jsonb_typeof(p_result) = 'object'
      and p_result - '$artifact' = '{}'
      and p_result ->> '$artifact' ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
      then (p_result ->> '$artifact')::uuid
  end
$$;
comment on function trunkline_internal.result_reference(jsonb) is 'Returns the artifact that a stored result refers to, or null if it is a plain result.';
