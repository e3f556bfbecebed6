-- Returns the position after a scan that met p_scanned jobs without limits and took p_taken of them.
-- p_place and p_sequence are the lane and the number of the last job taken. Lanes before that one are covered up to
-- p_bound, the last number drawn before the scan; so are all lanes if the scan reached their ends and took every job.
create or replace function trunkline_internal.claim_next_position(
  p_lanes trunkline_internal.lane_list,
  p_scanned integer,
  p_taken integer,
  p_place bigint,
  p_sequence bigint,
  p_limit integer,
  p_bound bigint,
  p_due_until timestamptz,
  p_now timestamptz
)
returns jsonb
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_covered bigint[];
begin
  if not p_lanes.moves then
    return p_lanes.position || jsonb_build_object('for', p_lanes.made_for);
  end if;
  -- Numbers were drawn, but other claims took the jobs: assign an id, without which the position could not move.
  if p_taken = 0 and p_bound > coalesce((
    select min(coalesce(l.value ->> 1, l.value ->> 0)::bigint)
    from jsonb_each(p_lanes.position -> 'lanes') as l
    where l.key <> '/due'
  ), -1) then
    perform pg_current_xact_id();
  end if;
  for v_place in 1..cardinality(p_lanes.names) loop
    v_covered[v_place] := case
      when (p_scanned < p_limit and p_taken = p_scanned) or v_place < p_place then p_bound
      when v_place = p_place then least(p_sequence, p_bound)
    end;
  end loop;
  return trunkline_internal.next_position(
    p_position => p_lanes.position, p_for => p_lanes.made_for, p_names => p_lanes.names || '/due'::text,
    p_covered => v_covered || (extract(epoch from p_due_until) * 1000000)::bigint,
    p_snapshot => p_lanes.snapshot, p_now => p_now
  );
end;
$$;
comment on function trunkline_internal.claim_next_position(trunkline_internal.lane_list, integer, integer, bigint, bigint, integer, bigint, timestamptz, timestamptz) is 'Returns the position after a scan that met p_scanned jobs without limits and took p_taken of them.';
