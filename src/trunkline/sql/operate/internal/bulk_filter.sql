-- Reads the filter of a bulk function: refuses one that names nothing but states, unless p_all, and keeps the states that the function changes.
-- Without a state in the filter these are p_default; otherwise those of the filter that are in p_allowed.
create or replace function trunkline_internal.bulk_filter(p_filter jsonb, p_all boolean, p_default text[], p_allowed text[])
returns trunkline_internal.job_filter
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_filter trunkline_internal.job_filter := trunkline_internal.read_filter(p_filter => p_filter);
  v_names_states boolean := coalesce(p_filter -> 'state', 'null') <> 'null';
begin
  if p_all is not true
    and not exists (select from jsonb_each(p_filter) as f where f.key <> 'state' and f.value <> 'null')
  then
    perform trunkline_internal.refuse(p_name => 'empty_filter', p_detail => jsonb_build_object('filter', p_filter));
  end if;
  v_filter.states := array(
    select s.state
    from unnest(v_filter.states) as s (state)
    where s.state = any(case when v_names_states then p_allowed else p_default end)
  );
  return v_filter;
end;
$$;
comment on function trunkline_internal.bulk_filter(jsonb, boolean, text[], text[]) is 'Reads the filter of a bulk function: refuses one that names nothing but states, unless p_all, and keeps the states that the function changes.';
