-- Finds and locks up to p_limit ready jobs without limits, lane by lane, each lane by sequence.
-- Intended plan: the index waiting_ready by (queue, lane, sequence), one lane after the other and lazily, so that
-- exactly the returned rows are locked. Guarded by tests/plans. Runs with the planner settings of claim.
create or replace function trunkline_internal.claim_scan(
  p_lanes trunkline_internal.lane_list,
  p_limit integer,
  p_tasks text[],
  p_scope text,
  p_now timestamptz
)
returns trunkline_internal.candidates
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_jobs trunkline_internal.candidates;
begin
  select
    array_agg(h.tid), array_agg(h.job_id), array_agg(h.place), array_agg(h.sequence),
    array_agg(h.job_id) filter (where h.unique_key is not null),
    min(h.payload_day), max(h.payload_day), 'exclusive', count(*)::integer
  into
    v_jobs.tids, v_jobs.jobs, v_jobs.places, v_jobs.sequences,
    v_jobs.keyed,
    v_jobs.first_day, v_jobs.last_day, v_jobs.locking, v_jobs.others
  from (
    select w.tid, w.job_id, w.sequence, w.unique_key, w.payload_day, l.place
    from unnest(p_lanes.queues, p_lanes.lanes, p_lanes.floors, p_lanes.ceilings)
      with ordinality as l (queue, lane, floor, ceiling, place)
    cross join lateral (
      select w.ctid as tid, w.job_id, w.sequence, w.unique_key, w.payload_day
      from trunkline_internal.waiting as w
      where w.queue = l.queue
        and w.lane = l.lane
        and w.state = 'ready'
        and w.bucket is null
        and w.sequence > l.floor
        and w.sequence <= l.ceiling
        and (p_tasks is null or w.task = any(p_tasks))
        and (p_scope is null or w.tenant = p_scope)
        and (w.expires_at is null or w.expires_at > p_now or w.attempt > 0)
      order by w.sequence
      limit p_limit
      for update of w skip locked
    ) as w
    limit p_limit
  ) as h;
  return v_jobs;
end;
$$;
comment on function trunkline_internal.claim_scan(trunkline_internal.lane_list, integer, text[], text, timestamptz) is 'Finds and locks up to p_limit ready jobs without limits, lane by lane, each lane by sequence.';
