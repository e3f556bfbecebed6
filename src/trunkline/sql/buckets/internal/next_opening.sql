-- Returns when time alone lets limited jobs start that wait in these queues (null: all).
-- Null if none waits for a window: a freed slot is announced. Reads at most a hundred buckets.
create or replace function trunkline_internal.next_opening(p_queues text[], p_now timestamptz)
returns timestamptz
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_opening timestamptz;
begin
  select min(greatest(o.free_at, p_now + interval '50 milliseconds'))
  into v_opening
  from (
    select
      case
        when o.free_at > '-infinity'::timestamptz then o.free_at
        -- There is room: the claim only skipped the bucket because another one holds it.
        when not exists (
          select
          from trunkline_internal.bucket_room(
            p_buckets => w.bucket_ids,
            p_limits => w.limit_ids,
            p_now => p_now
          ) as r
          where r.slots < 1
        ) then o.free_at
      end as free_at
    from (
      select distinct on (g.bucket, g.queue) g.bucket, g.queue, g.limit_id
      from trunkline_internal.bucket_queues as g
      where p_queues is null or g.queue = any(p_queues)
      order by g.bucket, g.queue, g.limit_id desc
      limit 100
    ) as g
    cross join lateral (
      select w.cost_requests, w.cost_tokens, w.cost_units, w.limit_ids, w.bucket_ids, l.lane
      from trunkline_internal.lanes as l
      cross join lateral (
        select w.cost_requests, w.cost_tokens, w.cost_units, w.limit_ids, w.bucket_ids
        from trunkline_internal.waiting as w
        where w.bucket = g.bucket and w.queue = g.queue and w.lane = l.lane and w.state = 'ready'
        order by w.sequence
        limit 1
      ) as w
      where l.queue = g.queue
      order by l.lane desc
      limit 1
    ) as w
    -- All of its buckets, not only the one in whose lane it waits: a job of a share group stays there.
    cross join lateral (
      select max(trunkline_internal.bucket_opens_at(
        p_bucket => i.bucket, p_limit => m, p_state => s.state,
        p_cost => row(w.cost_requests, w.cost_tokens, w.cost_units)::trunkline_internal.amounts, p_lane => w.lane, p_now => p_now
      )) as free_at
      from unnest(w.limit_ids, w.bucket_ids) as i (limit_id, bucket)
      join trunkline_internal.limits as m
        on m.limit_id = trunkline_internal.limit_of(p_bucket => i.bucket, p_limit => i.limit_id)
        and m.status = 'active'
      left join lateral (
        select s as state from trunkline_internal.bucket_states as s where s.bucket = i.bucket order by s.revision desc limit 1
      ) as s on true
    ) as o
  ) as o
  where o.free_at < 'infinity'::timestamptz;
  return v_opening;
end;
$$;
comment on function trunkline_internal.next_opening(text[], timestamptz) is 'Returns when time alone lets limited jobs start that wait in these queues (null: all).';
