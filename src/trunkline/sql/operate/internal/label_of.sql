-- Returns the label under which job_labels lists the jobs with a tag or a correlation id; p_kind is tag or correlation_id.
create or replace function trunkline_internal.label_of(p_kind text, p_value text)
returns bigint
language sql
immutable
as $$
  select pg_catalog.hashtextextended(p_kind || ':' || p_value, 0)
$$;
comment on function trunkline_internal.label_of(text, text) is 'Returns the label under which job_labels lists the jobs with a tag or a correlation id; p_kind is tag or correlation_id.';
