-- Explains why a limited job waits and, from its place and the rates, until about when.
-- If the job has several limits, reports the one that opens last: a job of a share group stays in its own lane, whichever
-- limit refuses it.
create or replace function trunkline_internal.explain_bucket(
  p_bucket bigint,
  p_cost trunkline_internal.job_cost,
  p_queue text,
  p_lane smallint,
  p_sequence bigint
)
returns trunkline.explanation
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_ahead bigint;
  v_amounts trunkline_internal.amounts := row(p_cost.requests, p_cost.tokens, p_cost.units)::trunkline_internal.amounts;
  v_bucket bigint := p_bucket;
  v_limit integer;
  v_name text;
  v_now timestamptz := trunkline.clock();
  v_room record;
  v_seconds double precision;
  v_until timestamptz;
begin
  if cardinality(p_cost.bucket_ids) > 1 then
    select r.bucket into v_bucket
    from trunkline_internal.bucket_room(
      p_buckets => p_cost.bucket_ids,
      p_limits => array(
        select trunkline_internal.limit_of(p_bucket => i.bucket, p_limit => i.limit_id)
        from unnest(p_cost.limit_ids, p_cost.bucket_ids) as i (limit_id, bucket)
      ),
      p_now => v_now
    ) as r
    order by
      (r.allowed).status = 'active',
      coalesce(r.slots, 1) > 0,
      trunkline_internal.bucket_opens_at(
        p_bucket => r.bucket, p_limit => r.allowed, p_state => r.state, p_cost => v_amounts, p_lane => p_lane, p_now => v_now
      ) desc,
      r.bucket <> p_bucket
    limit 1;
  end if;
  select n.name, n.limit_id
  into v_name, v_limit
  from trunkline_internal.bucket_names as n
  where n.bucket = v_bucket
  order by n.limit_id desc
  limit 1;
  select r.* into v_room
  from trunkline_internal.bucket_room(p_buckets => array[v_bucket], p_limits => array[v_limit], p_now => v_now) as r;
  select count(*)
  into v_ahead
  from (
    (
      select
      from trunkline_internal.waiting as w
      where w.bucket = p_bucket and w.queue = p_queue and w.state = 'ready' and w.lane > p_lane
      limit 1000
    )
    union all
    (
      select
      from trunkline_internal.waiting as w
      where w.bucket = p_bucket
        and w.queue = p_queue
        and w.state = 'ready'
        and w.lane = p_lane
        and w.sequence < p_sequence
      limit 1000
    )
    limit 1000
  ) as ahead;
  -- Assumes that the jobs ahead cost the same.
  v_seconds := greatest(
    v_ahead * p_cost.requests * 60.0 / nullif((v_room.allowed).requests_per_minute, 0),
    v_ahead * p_cost.requests * 3600.0 / nullif((v_room.allowed).requests_per_hour, 0),
    v_ahead * p_cost.tokens * 60.0 / nullif((v_room.allowed).tokens_per_minute, 0),
    v_ahead * p_cost.tokens * 3600.0 / nullif((v_room.allowed).tokens_per_hour, 0)
  )::double precision;
  if (v_room.allowed).status = 'active' and coalesce(v_room.slots, 1) > 0 then
    v_until := greatest(
      trunkline_internal.bucket_opens_at(
        p_bucket => v_bucket, p_limit => v_room.allowed, p_state => v_room.state, p_cost => v_amounts, p_lane => p_lane, p_now => v_now
      ),
      v_now
    ) + make_interval(secs => coalesce(v_seconds, 0));
  end if;
  return row('limit', nullif(v_until, 'infinity'::timestamptz), jsonb_strip_nulls(jsonb_build_object(
    'limit', v_name, 'status', (v_room.allowed).status, 'reason', (v_room.allowed).reason, 'ahead', v_ahead,
    'counted_up_to', 1000, 'requests', p_cost.requests, 'tokens', p_cost.tokens, 'requests_left', v_room.requests,
    'tokens_left', v_room.tokens, 'units_left', v_room.units, 'slots_left', v_room.slots,
    'paused_until', v_room.paused_until, 'pause_reason', case when v_room.paused_until is not null then (v_room.state).pause_reason end
  )))::trunkline.explanation;
end;
$$;
comment on function trunkline_internal.explain_bucket(bigint, trunkline_internal.job_cost, text, smallint, bigint) is 'Explains why a limited job waits and, from its place and the rates, until about when.';
