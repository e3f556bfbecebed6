-- Keeps the candidates for which all of their limits have room; moves a job that another limit refuses to that limit's lane.
-- Takes jobs one by one, best first, each reducing the room. A job stays in its lane if another transaction holds the
-- bucket that it needs, or if it belongs to a share group: elsewhere it would lose its turn. The caller holds the buckets in
-- whose lanes they wait. The result's moved is true if jobs went to another lane or were set aside: the claim then reads
-- those behind them.
create or replace function trunkline_internal.fit_all_buckets(
  p_found trunkline_internal.candidates,
  p_lanes smallint[],
  p_now timestamptz
)
returns trunkline_internal.candidates
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_asked constant integer := 20;
  v_aside integer := 0;
  v_fair bigint[];
  v_amount bigint;
  v_bucket bigint;
  v_buckets bigint[];
  v_job record;
  v_limits integer[];
  v_low integer[];
  v_low_units bigint[];
  v_moved uuid[] := array[]::uuid[];
  v_quota_units text[];
  v_place integer;
  v_refused_by bigint;
  v_requests bigint[];
  v_slots bigint[];
  v_stays uuid[] := array[]::uuid[];
  v_taken trunkline_internal.candidates;
  v_tids tid[] := array[]::tid[];
  v_tokens bigint[];
  v_units bigint[];
begin
  select array_agg(g.bucket), array_agg(trunkline_internal.limit_of(p_bucket => g.bucket, p_limit => g.limit_id))
  into v_buckets, v_limits
  from (
    select distinct i.bucket, i.limit_id
    from unnest(p_found.tids) as f (tid)
    join trunkline_internal.waiting as w on w.ctid = f.tid
    cross join lateral unnest(w.limit_ids, w.bucket_ids) as i (limit_id, bucket)
  ) as g
  where trunkline_internal.try_lock_bucket(p_bucket => g.bucket);
  select
    array_agg(r.bucket), array_agg(r.requests), array_agg(r.tokens), array_agg(r.units), array_agg(r.low_units),
    array_agg((r.allowed).quota_unit), array_agg((r.allowed).quota_low_below * 2),
    array_agg(r.bucket) filter (where (r.allowed).share_group is not null),
    array_agg(case when (r.allowed).status = 'active' and r.paused_until is null then coalesce(r.slots, 2147483647) else 0 end)
  into v_buckets, v_requests, v_tokens, v_units, v_low_units, v_quota_units, v_low, v_fair, v_slots
  from trunkline_internal.bucket_room(p_buckets => v_buckets, p_limits => v_limits, p_now => p_now) as r;
  for v_job in
    select f.tid, f.place, w.job_id, w.cost_requests, w.cost_tokens, w.cost_units, w.bucket_ids
    from unnest(p_found.tids, p_found.places, p_found.sequences) as f (tid, place, sequence)
    join trunkline_internal.waiting as w on w.ctid = f.tid
    order by f.place, f.sequence
  loop
    v_refused_by := null;
    foreach v_bucket in array v_job.bucket_ids loop
      v_place := array_position(v_buckets, v_bucket);
      if v_place is null then
        v_refused_by := 0;
      elsif v_slots[v_place] < 1
        -- A spent window closes the bucket for every job, also for one that costs nothing of it.
        or v_requests[v_place] < greatest(v_job.cost_requests, 1)
        or v_tokens[v_place] < greatest(v_job.cost_tokens, 1)
        or trunkline_internal.amount_of(
          p_unit => v_quota_units[v_place], p_requests => v_job.cost_requests, p_tokens => v_job.cost_tokens,
          p_units => v_job.cost_units
        ) > (
          case when p_lanes[v_job.place] < v_low[v_place] then v_low_units[v_place] else v_units[v_place] end
        )
      then
        v_refused_by := v_bucket;
      end if;
      exit when v_refused_by is not null;
    end loop;
    if v_refused_by is null then
      foreach v_bucket in array v_job.bucket_ids loop
        v_place := array_position(v_buckets, v_bucket);
        v_slots[v_place] := v_slots[v_place] - 1;
        v_requests[v_place] := v_requests[v_place] - v_job.cost_requests;
        v_tokens[v_place] := v_tokens[v_place] - v_job.cost_tokens;
        v_amount := trunkline_internal.amount_of(
          p_unit => v_quota_units[v_place], p_requests => v_job.cost_requests, p_tokens => v_job.cost_tokens,
          p_units => v_job.cost_units
        );
        v_units[v_place] := v_units[v_place] - v_amount;
        v_low_units[v_place] := v_low_units[v_place] - v_amount;
      end loop;
      v_tids := v_tids || v_job.tid;
    elsif v_refused_by <> 0 and coalesce(v_job.bucket_ids && v_fair, false) then
      v_stays := v_stays || v_job.job_id;
    elsif v_refused_by <> 0 then
      update trunkline_internal.waiting as w
      set bucket = v_refused_by, sequence = nextval('trunkline_internal.job_sequence')
      where w.job_id = v_job.job_id and w.bucket <> v_refused_by;
      if found then
        v_moved := v_moved || v_job.job_id;
      end if;
    end if;
  end loop;
  if cardinality(v_moved) > 0 then
    perform trunkline_internal.open_buckets(p_jobs => v_moved);
    -- Jobs behind them can be claimed now.
    perform trunkline_internal.wake_sleepers(p_queues => array(
      select distinct w.queue from trunkline_internal.waiting as w where w.job_id = any(v_moved)
    ));
  end if;
  -- A job that stays at the head of its lane and can never start would block everything behind it.
  if cardinality(v_tids) = 0 and cardinality(v_stays) > 0 then
    v_aside := trunkline_internal.set_aside(p_jobs => v_stays[1:c_asked], p_now => p_now);
  end if;
  select
    array_agg(f.tid), array_agg(f.job_id), array_agg(f.place), array_agg(f.sequence),
    array_agg(f.job_id) filter (where w.unique_key is not null),
    min(w.payload_day), max(w.payload_day)
  into
    v_taken.tids, v_taken.jobs, v_taken.places, v_taken.sequences,
    v_taken.keyed,
    v_taken.first_day, v_taken.last_day
  from unnest(p_found.tids, p_found.jobs, p_found.places, p_found.sequences) as f (tid, job_id, place, sequence)
  join trunkline_internal.waiting as w on w.ctid = f.tid
  where f.tid = any(v_tids);
  v_taken.moved := cardinality(v_moved) > 0 or v_aside > 0;
  return v_taken;
end;
$$;
comment on function trunkline_internal.fit_all_buckets(trunkline_internal.candidates, smallint[], timestamptz) is 'Keeps the candidates for which all of their limits have room; moves a job that another limit refuses to that limit''s lane.';
