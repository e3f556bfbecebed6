-- Appends limited candidates to candidates of other buckets; either may be null.
create or replace function trunkline_internal.add_candidates(
  p_found trunkline_internal.candidates,
  p_more trunkline_internal.candidates
)
returns trunkline_internal.candidates
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_more.tids is null then
    return p_found;
  elsif p_found.tids is null then
    return p_more;
  end if;
  return row(
    p_found.tids || p_more.tids,
    p_found.jobs || p_more.jobs,
    p_found.places || p_more.places,
    p_found.sequences || p_more.sequences,
    p_found.keyed || p_more.keyed,
    least(p_found.first_day, p_more.first_day),
    greatest(p_found.last_day, p_more.last_day),
    -- Where they differ, some buckets have yet to be locked. Locking the others again does no harm.
    case when p_found.locking = p_more.locking then p_found.locking else 'deferred' end,
    coalesce(p_found.moved or p_more.moved, false),
    0,
    -- Their buckets are disjoint. If the charges of one are unknown, so are all.
    case when p_found.charges is not null and p_more.charges is not null then p_found.charges || p_more.charges end,
    p_found.rooms || p_more.rooms
  );
end;
$$;
comment on function trunkline_internal.add_candidates(trunkline_internal.candidates, trunkline_internal.candidates) is 'Appends limited candidates to candidates of other buckets; either may be null.';
