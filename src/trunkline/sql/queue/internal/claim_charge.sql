-- Charges the buckets of the limited jobs that a claim took, and wakes other workers if there may be more such jobs.
-- p_bound is the last sequence number drawn before the transaction had an id; null if it had one already.
create or replace function trunkline_internal.claim_charge(
  p_taken trunkline_internal.candidates,
  p_lanes trunkline_internal.lane_list,
  p_limit integer,
  p_most integer,
  p_bound bigint,
  p_snapshot pg_snapshot,
  p_now timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_taken.locking = 'exclusive' then
    perform trunkline_internal.charge_buckets(
      p_charges => p_taken.charges, p_queues => p_lanes.queues, p_lanes => p_lanes.lanes, p_bound => p_bound,
      p_rooms => p_taken.rooms, p_snapshot => p_snapshot, p_now => p_now
    );
  else
    perform trunkline_internal.charge_shared(p_charges => p_taken.charges, p_now => p_now);
  end if;
  -- Another claim may have skipped these buckets while they were locked, and its worker gone to sleep.
  if cardinality(p_taken.tids) = p_limit or cardinality(p_taken.tids) - p_taken.others = p_most then
    perform trunkline_internal.wake_sleepers(p_queues => p_lanes.asked);
  end if;
end;
$$;
comment on function trunkline_internal.claim_charge(trunkline_internal.candidates, trunkline_internal.lane_list, integer, integer, bigint, pg_snapshot, timestamptz) is 'Charges the buckets of the limited jobs that a claim took, and wakes other workers if there may be more such jobs.';
