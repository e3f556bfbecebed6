-- Takes limited jobs that a claim found among its others, best first, and the buckets it does not hold yet; answers with what to charge.
-- Where a bucket has no room after all, or somebody holds it for long, it looks again for what can be had at once.
create or replace function trunkline_internal.take_limited(
  p_limited trunkline_internal.candidates,
  p_others trunkline_internal.candidates,
  p_limit integer,
  p_most integer,
  p_queues text[],
  p_lanes smallint[],
  p_tasks text[],
  p_scope text,
  p_now timestamptz,
  p_snapshot pg_snapshot
)
returns trunkline_internal.candidates
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_may boolean;
  v_taken trunkline_internal.candidates;
begin
  v_taken := trunkline_internal.merge_candidates(p_others => p_others, p_limited => p_limited, p_limit => p_limit);
  v_taken.charges := trunkline_internal.sum_charges(p_found => v_taken);
  if v_taken.charges is null or v_taken.held then
    return v_taken;
  end if;
  if v_taken.shares then
    v_may := trunkline_internal.share_buckets(p_charges => v_taken.charges, p_now => p_now);
  end if;
  if v_may is null then
    v_may := trunkline_internal.lock_wide_buckets(p_charges => v_taken.charges, p_now => p_now);
    v_taken.held := true;
  end if;
  if v_may then
    return v_taken;
  end if;
  v_taken := trunkline_internal.merge_candidates(
    p_others => p_others,
    p_limited => trunkline_internal.select_limited(
      p_queues => p_queues, p_lanes => p_lanes, p_limit => p_most, p_tasks => p_tasks, p_scope => p_scope,
      p_now => p_now, p_snapshot => p_snapshot, p_eager => false
    ),
    p_limit => p_limit
  );
  v_taken.charges := trunkline_internal.sum_charges(p_found => v_taken);
  return v_taken;
end;
$$;
comment on function trunkline_internal.take_limited(trunkline_internal.candidates, trunkline_internal.candidates, integer, integer, text[], smallint[], text[], text, timestamptz, pg_snapshot) is 'Takes limited jobs that a claim found among its others, best first, and the buckets it does not hold yet; answers with what to charge.';
