-- Counts the waiting, running and dead jobs of each queue, each number up to 10,000, so that the time does not depend on the backlog.
-- A number that is at least counted_up_to means that many or more. ready_tasks has the counted ready jobs by task. Below the
-- bound oldest_ready_at is exact. Above it, it is the oldest of the counted jobs and of the first job of each lane, which
-- is claimed next. p_queues restricts the result to these queues.
-- A session that acts for one tenant reads the same rows and counts its own among them. If a queue has more rows than are
-- read, counted_up_to is the tenant's smallest count that stopped early. Queues without a counted job are left out.
-- Read-only. Intended plan: index scans with a limit. Guarded by tests/plans.
create or replace function trunkline.queue_sizes(p_queues text[] default null)
returns setof trunkline.queue_size
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  c_most constant integer := 10000;
  v_oldest timestamptz;
  v_queue text;
  v_rows bigint;
  v_scope text := trunkline.tenant_scope();
  v_size trunkline.queue_size;
begin
  for v_queue in
    with recursive dead_names as (
      (select d.queue from trunkline_internal.dead as d order by d.queue limit 1)
      union all
      select (select d.queue from trunkline_internal.dead as d where d.queue > n.queue order by d.queue limit 1)
      from dead_names as n
      where n.queue is not null
    )
    select k.queue
    from (
      select l.queue from trunkline_internal.lanes as l
      union
      select q.queue from trunkline_internal.queues as q
      union
      select r.queue from trunkline_internal.running as r
      union
      select n.queue from dead_names as n where n.queue is not null
    ) as k
    where p_queues is null or k.queue = any(p_queues)
    order by k.queue
  loop
    v_size := null;
    v_size.queue := v_queue;
    v_size.counted_up_to := c_most;
    -- Limited jobs wait by bucket. A bucket may be listed for a queue in which no job waits for it any longer.
    select
      coalesce(sum(t.jobs), 0)::bigint, min(t.oldest), coalesce(jsonb_object_agg(t.task, t.jobs) filter (where t.jobs > 0), '{}'),
      coalesce(sum(t.rows), 0)::bigint
    into v_size.ready, v_size.oldest_ready_at, v_size.ready_tasks, v_rows
    from (
      select
        r.task, count(*) as rows, count(*) filter (where v_scope is null or r.tenant = v_scope) as jobs,
        min(r.run_at) filter (where v_scope is null or r.tenant = v_scope) as oldest
      from (
        (
          select w.task, w.run_at, w.tenant
          from trunkline_internal.waiting as w
          where w.queue = v_queue and w.bucket is null and w.state = 'ready'
          order by w.lane, w.sequence
          limit c_most
        )
        union all
        (
          select w.task, w.run_at, w.tenant
          from (
            select distinct g.bucket from trunkline_internal.bucket_queues as g where g.queue = v_queue limit c_most
          ) as g
          cross join lateral (
            select w.task, w.run_at, w.tenant
            from trunkline_internal.waiting as w
            where w.bucket = g.bucket and w.queue = v_queue and w.bucket is not null and w.state = 'ready'
            order by w.lane, w.sequence
            limit c_most
          ) as w
          limit c_most
        )
        limit c_most
      ) as r
      group by r.task
    ) as t;
    if v_rows >= c_most then
      v_size.counted_up_to := v_size.ready::integer;
      select min(h.run_at)
      into v_oldest
      from trunkline_internal.lanes as l
      cross join lateral (
        select w.run_at, w.tenant
        from trunkline_internal.waiting as w
        where w.queue = l.queue and w.lane = l.lane and w.bucket is null and w.state = 'ready'
        order by w.sequence
        limit 1
      ) as h
      where l.queue = v_queue and (v_scope is null or h.tenant = v_scope);
      v_size.oldest_ready_at := least(v_size.oldest_ready_at, v_oldest);
    end if;
    -- 'scheduled' sorts after 'ready', and 'blocked' before it. For an equality the planner may choose the index of due
    -- jobs, which contains all queues.
    select count(*), count(*) filter (where v_scope is null or w.tenant = v_scope)
    into v_rows, v_size.scheduled
    from (
      select w.tenant from trunkline_internal.waiting as w where w.queue = v_queue and w.state > 'ready' limit c_most
    ) as w;
    if v_rows >= c_most then
      v_size.counted_up_to := least(v_size.counted_up_to, v_size.scheduled::integer);
    end if;
    select count(*), count(*) filter (where v_scope is null or w.tenant = v_scope)
    into v_rows, v_size.blocked
    from (
      select w.tenant from trunkline_internal.waiting as w where w.queue = v_queue and w.state < 'ready' limit c_most
    ) as w;
    if v_rows >= c_most then
      v_size.counted_up_to := least(v_size.counted_up_to, v_size.blocked::integer);
    end if;
    select count(*), count(*) filter (where v_scope is null or d.tenant = v_scope)
    into v_rows, v_size.dead
    from (select d.tenant from trunkline_internal.dead as d where d.queue = v_queue limit c_most) as d;
    if v_rows >= c_most then
      v_size.counted_up_to := least(v_size.counted_up_to, v_size.dead::integer);
    end if;
    select count(*) into v_size.running
    from trunkline_internal.running as r
    where r.queue = v_queue and (v_scope is null or r.tenant = v_scope);
    if v_scope is null or v_size.ready + v_size.scheduled + v_size.blocked + v_size.running + v_size.dead > 0 then
      return next v_size;
    end if;
  end loop;
end;
$$;
comment on function trunkline.queue_sizes(text[]) is 'Counts the waiting, running and dead jobs of each queue, each number up to 10,000, so that the time does not depend on the backlog.';
