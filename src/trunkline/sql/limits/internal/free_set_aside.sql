-- Frees jobs that were set aside and fit their limits again, at most p_most: they return to their old places; returns how many.
-- blocked -> ready with the sequence number that the job had. Nothing else reuses a number: the cursor of a
-- bucket may lie behind it, so this locks the bucket and drops the cursor with the same commit. Buckets that another transaction
-- holds, and rows that it has locked, are left to the next call. The cheapest jobs of each bucket are freed first, jobs
-- of the same cost in their order, so that jobs that do not fit yet are never read.
-- Jobs are found by id: (state = 'blocked') is true keeps the index of all blocked jobs out of the plan.
create or replace function trunkline_internal.free_set_aside(p_most integer, p_now timestamptz)
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
  -- Each bucket is a lock until the commit.
  c_buckets constant integer := 500;
  v_bucket record;
  v_freed integer := 0;
  v_buckets bigint[] := array[]::bigint[];
  v_jobs uuid[];
  v_queues text[] := array[]::text[];
begin
  for v_bucket in
    -- One row for each bucket and unit whose cheapest job fits.
    with recursive buckets as (
      (select a.bucket, a.unit, a.limit_id, a.cost from trunkline_internal.set_aside as a order by a.bucket, a.unit, a.cost limit 1)
      union all
      select n.bucket, n.unit, n.limit_id, n.cost
      from buckets as b
      cross join lateral (
        select a.bucket, a.unit, a.limit_id, a.cost
        from trunkline_internal.set_aside as a
        where (a.bucket, a.unit) > (b.bucket, b.unit)
        order by a.bucket, a.unit, a.cost
        limit 1
      ) as n
    )
    select b.bucket, b.unit, coalesce(m.most, 9223372036854775807) as most
    from buckets as b
    left join lateral (
      select trunkline_internal.amount_of(
        p_unit => b.unit, p_requests => (a.most).requests, p_tokens => (a.most).tokens, p_units => (a.most).units
      ) as most
      from trunkline_internal.limits as l
      cross join lateral (select trunkline_internal.most_at_once(p_limit => l) as most) as a
      where l.limit_id = trunkline_internal.limit_of(p_bucket => b.bucket, p_limit => b.limit_id)
    ) as m on true
    where b.cost <= coalesce(m.most, 9223372036854775807)
  loop
    exit when v_freed >= p_most or cardinality(v_buckets) >= c_buckets;
    v_jobs := array(
      select a.job_id
      from trunkline_internal.set_aside as a
      where a.bucket = v_bucket.bucket and a.unit = v_bucket.unit and a.cost <= v_bucket.most
      order by a.cost, a.sequence
      limit p_most - v_freed
    );
    continue when cardinality(v_jobs) = 0;
    -- A separate statement from the next one: rows read before the lock may be old.
    v_buckets := v_buckets || array(
      select g.bucket
      from (
        select distinct w.bucket
        from trunkline_internal.waiting as w
        where w.job_id = any(v_jobs) and w.bucket <> all(v_buckets)
        order by w.bucket
        limit c_buckets - cardinality(v_buckets)
      ) as g
      where trunkline_internal.try_lock_bucket(p_bucket => g.bucket)
    );
    v_jobs := array(
      select w.job_id
      from trunkline_internal.waiting as w
      where w.job_id = any(v_jobs) and (w.state = 'blocked') is true and w.bucket = any(v_buckets)
      order by w.job_id
      for update of w skip locked
    );
    -- If another of its limits is too small by now, the job waits for that one next.
    update trunkline_internal.set_aside as a
    set bucket = o.bucket, limit_id = o.limit_id, unit = o.unit, cost = o.cost
    from trunkline_internal.waiting as w
    cross join lateral trunkline_internal.exceeded_limit(
      p_cost => row(w.cost_requests, w.cost_tokens, w.cost_units, w.limit_ids, w.bucket_ids)::trunkline_internal.job_cost
    ) as o
    where a.job_id = any(v_jobs) and w.job_id = a.job_id and o.bucket is not null;
    v_jobs := array(
      select a.job_id
      from trunkline_internal.set_aside as a
      join trunkline_internal.waiting as w on w.job_id = a.job_id
      where a.job_id = any(v_jobs)
        and (trunkline_internal.exceeded_limit(
        p_cost => row(w.cost_requests, w.cost_tokens, w.cost_units, w.limit_ids, w.bucket_ids)::trunkline_internal.job_cost
      )).bucket is null
    );
    continue when cardinality(v_jobs) = 0;
    update trunkline_internal.waiting as w
    set state = 'ready', sequence = a.sequence, reason = null
    from trunkline_internal.set_aside as a
    where w.job_id = any(v_jobs) and a.job_id = w.job_id;
    delete from trunkline_internal.set_aside as a where a.job_id = any(v_jobs);
    insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, actor)
    select p_now, w.job_id, w.attempt, 'freed', 'ready', w.task, w.queue, w.tenant, session_user
    from trunkline_internal.waiting as w
    where w.job_id = any(v_jobs);
    perform trunkline_internal.open_buckets(p_jobs => v_jobs);
    perform trunkline_internal.drop_cursors(
      p_buckets => array(select distinct w.bucket from trunkline_internal.waiting as w where w.job_id = any(v_jobs))
    );
    v_queues := v_queues || array(select distinct w.queue from trunkline_internal.waiting as w where w.job_id = any(v_jobs));
    perform trunkline_internal.notify_followers(p_ids => v_jobs);
    v_freed := v_freed + cardinality(v_jobs);
  end loop;
  if v_freed > 0 then
    perform trunkline_internal.wake_sleepers(p_queues => v_queues);
  end if;
  return v_freed;
end;
$$;
comment on function trunkline_internal.free_set_aside(integer, timestamptz) is 'Frees jobs that were set aside and fit their limits again, at most p_most: they return to their old places; returns how many.';
