-- Counts failed and lost attempts for the buckets of their jobs that have a breaker, and opens breakers that reach their bound.
-- Called by move_running while the rows are still in running; the caller has locked them. Retries count like last
-- attempts; deferred, handed back and cancelled attempts do not count. A failed probe keeps its breaker open for as long
-- again. All of it commits with the failure: nothing is raised.
-- Locks the counting of closed breakers in order (lock_breakers), then rows of breakers in the order of the buckets.
-- Recovery waits for neither: the duty sweep_buckets counts the failures that it could not, and a half-open breaker whose
-- lost probe it could not record starts the next probe at once.
create or replace function trunkline_internal.note_failures(p_moves trunkline_internal.move[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_attempts integer[];
  v_closed bigint[];
  v_buckets bigint[];
  v_jobs uuid[];
  v_limits integer[];
  v_probed bigint[];
  v_waits boolean := exists (select from unnest(p_moves) as p where p.kind = 'failed');
begin
  if not exists (select from trunkline_internal.limits as m where m.breaker_failures is not null) then
    return;
  end if;
  select array_agg(f.bucket), array_agg(f.limit_id), array_agg(f.job_id), array_agg(f.attempt)
  into v_buckets, v_limits, v_jobs, v_attempts
  from (
    select distinct i.bucket, m.limit_id, r.job_id, r.attempt
    from trunkline_internal.running as r
    cross join lateral unnest(r.limit_ids, r.bucket_ids) as i (limit_id, bucket)
    join trunkline_internal.limits as m
      on m.limit_id = trunkline_internal.limit_of(p_bucket => i.bucket, p_limit => i.limit_id)
    where r.job_id = any(array(select p.job_id from unnest(p_moves) as p where p.kind in ('failed', 'lost')))
      and m.breaker_failures is not null
  ) as f;
  if v_buckets is null then
    return;
  end if;
  insert into trunkline_internal.breaker_failures (bucket, at, job_id, attempt)
  select f.bucket, p_now, f.job_id, f.attempt
  from unnest(v_buckets, v_jobs, v_attempts) as f (bucket, job_id, attempt);
  -- An open breaker needs no decision, so that many late failures do not wait for each other.
  v_closed := trunkline_internal.lock_breakers(
    p_buckets => array(
      select distinct f.bucket
      from unnest(v_buckets) as f (bucket)
      where not exists (select from trunkline_internal.breakers as b where b.bucket = f.bucket and b.state <> 'closed')
    ),
    p_wait => v_waits
  );
  if v_waits then
    v_probed := array(
      select b.bucket
      from trunkline_internal.breakers as b
      where b.bucket = any(v_buckets) and b.state = 'half_open' and b.probe_job = any(v_jobs)
      order by b.bucket
      for update
    );
  else
    v_probed := array(
      select b.bucket
      from trunkline_internal.breakers as b
      where b.bucket = any(v_buckets) and b.state = 'half_open' and b.probe_job = any(v_jobs)
      order by b.bucket
      for update skip locked
    );
  end if;
  update trunkline_internal.breakers as b
  set
    state = 'open',
    probe_at = p_now + m.breaker_probe_after,
    probe_job = null,
    changed_at = p_now,
    changed_by = session_user,
    reason = 'the probe failed'
  from unnest(v_buckets, v_limits) as f (bucket, limit_id)
  join trunkline_internal.limits as m on m.limit_id = f.limit_id
  where f.bucket = any(v_probed) and b.bucket = f.bucket;
  if cardinality(v_closed) > 0 then
    perform trunkline_internal.open_breakers(
      p_buckets => array_agg(f.bucket), p_limits => array_agg(f.limit_id), p_now => p_now
    )
    from (
      select distinct f.bucket, f.limit_id from unnest(v_buckets, v_limits) as f (bucket, limit_id) where f.bucket = any(v_closed)
    ) as f;
  end if;
end;
$$;
comment on function trunkline_internal.note_failures(trunkline_internal.move[], timestamptz) is 'Counts failed and lost attempts for the buckets of their jobs that have a breaker, and opens breakers that reach their bound.';
