-- Returns jobs that match a filter, newest first, at most p_limit, and where the search continues.
-- One call reads a bounded number of rows, so it may return fewer jobs than p_limit although older ones match: next is null
-- only at the end. Jobs with a correlation id, a tag or an error group are read from a separate index; others by id.
create or replace function trunkline_internal.match_jobs(
  p_filter trunkline_internal.job_filter,
  p_limit integer,
  p_before uuid,
  p_scope text
)
returns trunkline_internal.job_matches
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
declare
  c_look constant integer := 20000;
  v_before uuid := p_before;
  v_chunk integer := least(greatest(p_limit, 500), c_look);
  v_ids uuid[];
  v_label bigint;
  v_low uuid;
  v_matches trunkline_internal.job_matches;
  v_part trunkline_internal.job_matches;
  v_read integer := 0;
begin
  if p_filter.job_ids is not null then
    v_ids := array(select distinct i.id from unnest(p_filter.job_ids) as i (id) where i.id < p_before);
    v_matches := trunkline_internal.match_ids(p_filter => p_filter, p_ids => v_ids, p_limit => p_limit, p_scope => p_scope);
    if cardinality(v_matches.job_ids) = p_limit then
      v_matches.next := v_matches.job_ids[p_limit];
    end if;
    return v_matches;
  end if;
  if p_filter.correlation_id is not null then
    v_label := trunkline_internal.label_of(p_kind => 'correlation_id', p_value => p_filter.correlation_id);
  elsif p_filter.tag is not null then
    v_label := trunkline_internal.label_of(p_kind => 'tag', p_value => p_filter.tag);
  elsif p_filter.error_group is null then
    return trunkline_internal.match_range(
      p_filter => p_filter, p_limit => p_limit, p_before => p_before, p_look => c_look, p_scope => p_scope
    );
  end if;
  v_matches.job_ids := '{}';
  v_matches.states := '{}';
  v_low := coalesce(
    trunkline_internal.first_id(p_at => p_filter.created_from - interval '1 second'), '00000000-0000-0000-0000-000000000000'
  );
  v_before := least(v_before, trunkline_internal.first_id(p_at => p_filter.created_before + interval '1 second'));
  while v_read < c_look loop
    if v_label is not null then
      v_ids := array(
        select l.job_id
        from trunkline_internal.job_labels as l
        where l.label = v_label and l.job_id < v_before and l.job_id >= v_low
        order by l.job_id desc
        limit v_chunk
      );
    else
      v_ids := array(
        select d.job_id
        from trunkline_internal.dead as d
        -- Not an equality: the planner would then take the order of the primary key, and read all dead letters for it.
        where d.error_group >= p_filter.error_group
          and d.error_group <= p_filter.error_group
          and d.job_id < v_before
          and d.job_id >= v_low
        order by d.error_group desc, d.job_id desc
        limit v_chunk
      );
    end if;
    v_part := trunkline_internal.match_ids(
      p_filter => p_filter, p_ids => v_ids, p_limit => p_limit - cardinality(v_matches.job_ids), p_scope => p_scope
    );
    v_matches.job_ids := v_matches.job_ids || v_part.job_ids;
    v_matches.states := v_matches.states || v_part.states;
    if cardinality(v_matches.job_ids) = p_limit then
      v_matches.next := v_matches.job_ids[p_limit];
      return v_matches;
    end if;
    if cardinality(v_ids) < v_chunk then
      return v_matches;
    end if;
    v_before := v_ids[v_chunk];
    v_read := v_read + v_chunk;
  end loop;
  v_matches.next := v_before;
  return v_matches;
end;
$$;
comment on function trunkline_internal.match_jobs(trunkline_internal.job_filter, integer, uuid, text) is 'Returns jobs that match a filter, newest first, at most p_limit, and where the search continues.';
