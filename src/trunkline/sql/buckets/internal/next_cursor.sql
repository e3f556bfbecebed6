-- Returns the place up to which a bucket's lanes have no job, at or after its cursor; null if it has none, unchanged if unknown.
-- Never passes a job: it is the place before the first job that exists, whether this claim wants it or not, and at most
-- p_bound, the last number drawn before this transaction had an id. A null p_bound moves nothing.
create or replace function trunkline_internal.next_cursor(
  p_bucket bigint,
  p_place jsonb,
  p_queues text[],
  p_lanes smallint[],
  p_bound bigint,
  p_snapshot pg_snapshot,
  p_now timestamptz
)
returns jsonb
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  if p_place is null or p_bound is null then
    return p_place;
  end if;
  return trunkline_internal.next_position(
    p_position => p_place, p_for => 'bucket',
    p_names => array(
      select l.queue || '/' || l.lane from unnest(p_queues, p_lanes) with ordinality as l (queue, lane, nr) order by l.nr
    ),
    p_covered => array(
      select least(
        (
          select w.sequence - 1
          from trunkline_internal.waiting as w
          where w.bucket = p_bucket
            and w.queue = l.queue
            and w.lane = l.lane
            and w.state = 'ready'
            and w.sequence > trunkline_internal.position_floor(
              p_position => p_place, p_name => l.queue || '/' || l.lane, p_snapshot => p_snapshot
            )
          order by w.sequence
          limit 1
        ),
        p_bound
      )
      from unnest(p_queues, p_lanes) with ordinality as l (queue, lane, nr)
      order by l.nr
    ),
    p_snapshot => p_snapshot, p_now => p_now
  );
end;
$$;
comment on function trunkline_internal.next_cursor(bigint, jsonb, text[], smallint[], bigint, pg_snapshot, timestamptz) is 'Returns the place up to which a bucket''s lanes have no job, at or after its cursor; null if it has none, unchanged if unknown.';
