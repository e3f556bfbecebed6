-- Counts the jobs that could start now if there were workers, by queue and task: ready or due, in a queue that is not paused, with room in all their limits.
-- Bounded: reads at most 10,000 jobs without limits per queue, as many with limits, as many due ones, and 10,000 buckets.
-- Of a bucket it reads no more jobs than have room. Takes no lock, so the result is an estimate.
-- A due job counts although it is still scheduled, because without a worker nobody promotes it.
-- Intended plan: index scans with a limit. Guarded by tests/plans.
create or replace function trunkline_internal.startable_jobs(p_now timestamptz)
returns table (queue text, task text, jobs bigint)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set enable_nestloop = on
as $$
declare
  c_most constant integer := 10000;
begin
  if not trunkline_internal.setting(p_name => 'claims_enabled')::boolean then
    return;
  end if;
  return query
  with paused as materialized (
    select q.queue from trunkline_internal.queues as q where q.paused
  ),
  opened as materialized (
    select distinct g.queue, g.bucket, g.limit_id
    from (select b.queue, b.bucket, b.limit_id from trunkline_internal.bucket_queues as b order by b.bucket limit c_most) as g
    where g.queue not in (select p.queue from paused as p)
  ),
  open_rooms as materialized (
    select r.bucket, r.jobs
    from trunkline_internal.startable_room(
      p_buckets => array(select o.bucket from opened as o group by o.bucket order by o.bucket),
      p_limits => array(select max(o.limit_id) from opened as o group by o.bucket order by o.bucket),
      p_now => p_now
    ) as r
    where r.jobs > 0
  ),
  candidates as materialized (
    select
      -- <job shape: startable of w>
      w.job_id, w.queue, w.task, w.lane, w.sequence, w.limit_ids, w.bucket_ids, w.cost_requests, w.cost_tokens, w.cost_units
      -- </job>
    from (
      select distinct l.queue from trunkline_internal.lanes as l where l.queue not in (select p.queue from paused as p)
    ) as q
    cross join lateral (
      select w.*
      from trunkline_internal.waiting as w
      where w.queue = q.queue and w.bucket is null and w.state = 'ready'
      order by w.lane, w.sequence
      limit c_most
    ) as w
    union all
    (
      select
        -- <job shape: startable of w>
        w.job_id, w.queue, w.task, w.lane, w.sequence, w.limit_ids, w.bucket_ids, w.cost_requests, w.cost_tokens, w.cost_units
        -- </job>
      from opened as o
      join open_rooms as r on r.bucket = o.bucket
      cross join lateral (
        select w.*
        from trunkline_internal.waiting as w
        where w.bucket = o.bucket and w.queue = o.queue and w.bucket is not null and w.state = 'ready'
        order by w.lane, w.sequence
        limit least(r.jobs, c_most)
      ) as w
      limit c_most
    )
    union all
    (
      select
        -- <job shape: startable of w>
        w.job_id, w.queue, w.task, w.lane, w.sequence, w.limit_ids, w.bucket_ids, w.cost_requests, w.cost_tokens, w.cost_units
        -- </job>
      from (
        select w.*
        from trunkline_internal.waiting as w
        where w.state = 'scheduled' and w.run_at <= p_now
        order by w.run_at
        limit c_most
      ) as w
      where w.queue not in (select p.queue from paused as p)
    )
  ),
  limited as materialized (
    select c.job_id, i.bucket, i.limit_id, c.lane, c.sequence, c.cost_requests, c.cost_tokens, c.cost_units
    from candidates as c
    cross join lateral unnest(c.limit_ids, c.bucket_ids) as i (limit_id, bucket)
    where c.bucket_ids is not null
  ),
  rooms as materialized (
    select r.*
    from trunkline_internal.startable_room(
      p_buckets => array(select l.bucket from limited as l group by l.bucket order by l.bucket),
      p_limits => array(select max(l.limit_id) from limited as l group by l.bucket order by l.bucket),
      p_now => p_now
    ) as r
  ),
  refused as materialized (
    select distinct s.job_id
    from (
      select
        l.job_id,
        r.bucket is not null
          and coalesce(row_number() over each_bucket <= r.jobs, true)
          and coalesce(sum(l.cost_requests) over each_bucket <= r.requests, true)
          and coalesce(sum(l.cost_tokens) over each_bucket <= r.tokens, true)
          and coalesce(
            sum(trunkline_internal.amount_of(
              p_unit => r.quota_unit, p_requests => l.cost_requests, p_tokens => l.cost_tokens, p_units => l.cost_units
            )) over each_bucket <= r.units,
            true
          ) as fits
      from limited as l
      left join rooms as r on r.bucket = l.bucket
      window each_bucket as (partition by l.bucket order by l.lane desc, l.sequence, l.job_id rows unbounded preceding)
    ) as s
    where not s.fits
  )
  select c.queue, c.task, count(*)
  from candidates as c
  where c.bucket_ids is null or c.job_id not in (select r.job_id from refused as r)
  group by c.queue, c.task;
end;
$$;
comment on function trunkline_internal.startable_jobs(timestamptz) is 'Counts the jobs that could start now if there were workers, by queue and task: ready or due, in a queue that is not paused, with room in all their limits.';
