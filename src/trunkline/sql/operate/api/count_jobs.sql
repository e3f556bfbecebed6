-- Counts the jobs that match a filter by state, each number up to 10,000, so that the time does not depend on how many there are.
-- The filter is that of search_jobs. States that the filter leaves out have no row. With more, the number is a lower bound:
-- there are over 10,000, or the search stopped after the newest 20,000 jobs of the table, tag, correlation id or error group
-- and found that many among them.
create or replace function trunkline.count_jobs(p_filter jsonb default '{}')
returns setof trunkline.state_count
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_most constant integer := 10000;
  c_tables constant jsonb := '[["ready", "scheduled", "blocked"], ["running"], ["completed", "cancelled"], ["dead"]]'::jsonb;
  v_filter trunkline_internal.job_filter := trunkline_internal.read_filter(p_filter => p_filter);
  v_matches trunkline_internal.job_matches;
  v_part trunkline_internal.job_filter;
  v_scope text := trunkline.tenant_scope();
  v_table jsonb;
  v_tables jsonb := c_tables;
begin
  if num_nonnulls(v_filter.job_ids, v_filter.correlation_id, v_filter.tag, v_filter.error_group) > 0 then
    -- One search finds these in all tables.
    v_tables := '[["ready", "scheduled", "blocked", "running", "completed", "cancelled", "dead"]]'::jsonb;
  end if;
  for v_table in select t.states from jsonb_array_elements(v_tables) as t (states) loop
    v_part := v_filter;
    v_part.states := array(
      select s.state from jsonb_array_elements_text(v_table) as s (state) where s.state = any(v_filter.states)
    );
    continue when cardinality(v_part.states) = 0;
    v_matches := trunkline_internal.match_jobs(
      p_filter => v_part, p_limit => c_most * 2 + 1, p_before => 'ffffffff-ffff-ffff-ffff-ffffffffffff', p_scope => v_scope
    );
    return query
    select s.state, least(count(m.state), c_most)::integer, v_matches.next is not null or count(m.state) > c_most
    from unnest(v_part.states) as s (state)
    left join unnest(v_matches.states) as m (state) on m.state = s.state
    group by s.state
    order by array_position(v_part.states, s.state);
  end loop;
end;
$$;
comment on function trunkline.count_jobs(jsonb) is 'Counts the jobs that match a filter by state, each number up to 10,000, so that the time does not depend on how many there are.';
