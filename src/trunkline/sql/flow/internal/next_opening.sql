-- Tells when limited jobs that wait in these queues (null: all) may start, as far as time alone decides.
-- Null where none waits for a window: a slot that comes free is announced. Looks at a hundred gates.
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
    select trunkline_internal.gate_free_at(p_limit => m, p_state => s.state, p_requests => w.need[1], p_tokens => w.need[2]) as free_at
    from (
      select distinct on (g.gate, g.queue) g.gate, g.queue, g.limit_id
      from trunkline_internal.gate_queues as g
      where p_queues is null or g.queue = any(p_queues)
      order by g.gate, g.queue, g.limit_id desc
      limit 100
    ) as g
    join trunkline_internal.limits as m on m.limit_id = g.limit_id and m.status = 'active'
    join lateral (
      select s as state from trunkline_internal.gate_states as s where s.gate = g.gate order by s.epoch desc limit 1
    ) as s on (s.state).charged_at is not null
    cross join lateral (
      select w.need
      from trunkline_internal.lanes as l
      cross join lateral (
        select w.need
        from trunkline_internal.waiting as w
        where w.gate = g.gate and w.queue = g.queue and w.lane = l.lane and w.state = 'ready'
        order by w.sequence
        limit 1
      ) as w
      where l.queue = g.queue
      order by l.lane desc
      limit 1
    ) as w
  ) as o
  where o.free_at < 'infinity'::timestamptz;
  return v_opening;
end;
$$;
comment on function trunkline_internal.next_opening(text[], timestamptz) is 'Tells when limited jobs that wait in these queues (null: all) may start, as far as time alone decides.';
