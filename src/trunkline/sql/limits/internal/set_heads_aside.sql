-- Sets aside jobs that no longer fit their limits and are among the first p_depth of the buckets' lanes; returns how many.
-- ready -> blocked. Where one went, the first hundred of its lanes are read again, until fewer than a tenth of them go: at
-- most about c_most in a call. Claims, and later calls, set the rest aside near the head of its lane. Without the tenth, a
-- thousand small jobs in front of 5,000 large ones would be read 5,000 times.
-- Takes no bucket's lock, since nothing is charged.
create or replace function trunkline_internal.set_heads_aside(
  p_buckets bigint[],
  p_limits integer[],
  p_depth integer,
  p_now timestamptz
)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  c_most constant integer := 5000;
  c_next constant integer := 100;
  c_rows constant integer := 10000;
  c_tenth constant integer := 10;
  v_depth integer := p_depth;
  v_buckets bigint[] := p_buckets;
  v_jobs uuid[];
  v_limits integer[] := p_limits;
  v_moved integer;
  v_read bigint;
  v_total integer := 0;
begin
  while v_buckets is not null and v_total < c_most loop
    select
      count(*),
      array_agg(h.job_id) filter (
        -- The function is called only where a job has several limits: it takes ten times as long.
        where trunkline_internal.never_fits(
          p_limit => m, p_requests => h.cost_requests, p_tokens => h.cost_tokens, p_units => h.cost_units
        )
          or (cardinality(h.bucket_ids) > 1 and (trunkline_internal.exceeded_limit(
            p_cost => row(h.cost_requests, h.cost_tokens, h.cost_units, h.limit_ids, h.bucket_ids)::trunkline_internal.job_cost
          )).bucket is not null)
      )
    into v_read, v_jobs
    from (
      select w.job_id, w.cost_requests, w.cost_tokens, w.cost_units, w.limit_ids, w.bucket_ids, g.limit_id
      from unnest(v_buckets, v_limits) as g (bucket, limit_id)
      cross join lateral (select distinct q.queue from trunkline_internal.bucket_queues as q where q.bucket = g.bucket) as q
      cross join lateral (select distinct l.lane from trunkline_internal.lanes as l where l.queue = q.queue) as l
      cross join lateral (
        select w.job_id, w.cost_requests, w.cost_tokens, w.cost_units, w.limit_ids, w.bucket_ids
        from trunkline_internal.waiting as w
        where w.bucket = g.bucket and w.queue = q.queue and w.lane = l.lane and w.state = 'ready'
        order by w.sequence
        limit v_depth
      ) as w
      -- The head of every lane is read, however many lanes there are.
      limit case when v_depth > 1 then c_rows end
    ) as h
    join trunkline_internal.limits as m on m.limit_id = h.limit_id;
    exit when v_jobs is null;
    v_jobs := v_jobs[1:c_most];
    v_moved := trunkline_internal.set_aside(p_jobs => v_jobs, p_now => p_now);
    v_total := v_total + v_moved;
    -- Only the head of each bucket is read; how many heads are set aside tells nothing about the jobs behind them.
    exit when v_moved = 0 or (v_depth > 1 and c_tenth * v_moved < v_read);
    select array_agg(g.bucket), array_agg(g.limit_id)
    into v_buckets, v_limits
    from (
      select distinct g.bucket, g.limit_id
      from unnest(v_buckets, v_limits) as g (bucket, limit_id)
      where g.bucket = any(array(select w.bucket from trunkline_internal.waiting as w where w.job_id = any(v_jobs)))
    ) as g;
    v_depth := greatest(v_depth, c_next);
  end loop;
  return v_total;
end;
$$;
comment on function trunkline_internal.set_heads_aside(bigint[], integer[], integer, timestamptz) is 'Sets aside jobs that no longer fit their limits and are among the first p_depth of the buckets'' lanes; returns how many.';
