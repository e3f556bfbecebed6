-- Merges the limited jobs of a claim with its other jobs, best first, and locks buckets that are not locked yet; returns the jobs and charges.
-- If a bucket turns out to have no room, or another transaction holds it for long, selects again what can start at once.
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
  v_sharing text;
  v_taken trunkline_internal.candidates;
begin
  v_taken := trunkline_internal.merge_candidates(p_others => p_others, p_limited => p_limited, p_limit => p_limit);
  v_taken.charges := trunkline_internal.sum_charges(p_found => v_taken);
  if v_taken.charges is null or v_taken.locking = 'exclusive' then
    return v_taken;
  end if;
  if v_taken.locking = 'shared' then
    v_sharing := trunkline_internal.share_buckets(p_charges => v_taken.charges, p_now => p_now);
    if v_sharing = 'shared' then
      return v_taken;
    end if;
  end if;
  if v_taken.locking = 'deferred' or v_sharing = 'too_narrow' then
    v_taken.locking := 'exclusive';
    if trunkline_internal.lock_wide_buckets(p_charges => v_taken.charges, p_now => p_now) then
      return v_taken;
    end if;
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
comment on function trunkline_internal.take_limited(trunkline_internal.candidates, trunkline_internal.candidates, integer, integer, text[], smallint[], text[], text, timestamptz, pg_snapshot) is 'Merges the limited jobs of a claim with its other jobs, best first, and locks buckets that are not locked yet; returns the jobs and charges.';
