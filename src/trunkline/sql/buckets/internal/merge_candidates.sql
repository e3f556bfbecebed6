-- Returns the best of unlimited and limited candidates in one order, so that neither kind delays more urgent jobs of the other.
create or replace function trunkline_internal.merge_candidates(
  p_others trunkline_internal.candidates,
  p_limited trunkline_internal.candidates,
  p_limit integer
)
returns trunkline_internal.candidates
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_taken trunkline_internal.candidates;
begin
  if p_limited.tids is null then
    return p_others;
  elsif p_others.tids is null and cardinality(p_limited.tids) <= p_limit then
    return p_limited;
  end if;
  select
    array_agg(m.tid), array_agg(w.job_id), array_agg(m.place), array_agg(m.sequence),
    array_agg(w.job_id) filter (where w.unique_key is not null),
    min(w.payload_day), max(w.payload_day), (count(*) filter (where m.other))::integer
  into
    v_taken.tids, v_taken.jobs, v_taken.places, v_taken.sequences,
    v_taken.keyed,
    v_taken.first_day, v_taken.last_day, v_taken.others
  from (
    select f.tid, f.place, f.sequence, f.other
    from (
      select f.tid, f.place, f.sequence, true as other
      from unnest(p_others.tids, p_others.places, p_others.sequences) as f (tid, place, sequence)
      union all
      select f.tid, f.place, f.sequence, false
      from unnest(p_limited.tids, p_limited.places, p_limited.sequences) as f (tid, place, sequence)
    ) as f
    order by f.place, f.sequence
    limit p_limit
  ) as m
  join trunkline_internal.waiting as w on w.ctid = m.tid;
  v_taken.locking := p_limited.locking;
  v_taken.rooms := p_limited.rooms;
  return v_taken;
end;
$$;
comment on function trunkline_internal.merge_candidates(trunkline_internal.candidates, trunkline_internal.candidates, integer) is 'Returns the best of unlimited and limited candidates in one order, so that neither kind delays more urgent jobs of the other.';
