-- Makes jobs that a claim starts the probes of their buckets' breakers, if these wait for one; closed breakers stay unchanged.
-- p_buckets and p_jobs are parallel. The caller holds the buckets, so no other claim starts a second probe.
-- A breaker that opened after the claim had read it is skipped: its probe is not due. Attempts are counted from the probe
-- on, because those that led to the opening would hide failures after it.
create or replace function trunkline_internal.begin_probes(p_buckets bigint[], p_jobs uuid[], p_now timestamptz)
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
  v_probed bigint[];
begin
  with probing as (
    update trunkline_internal.breakers as b
    set
      state = 'half_open',
      probe_at = null,
      probe_job = p.job_id,
      changed_at = p_now,
      changed_by = session_user
    from (
      select
        b.bucket,
        (select (array_agg(p.job_id))[1] from unnest(p_buckets, p_jobs) as p (bucket, job_id) where p.bucket = b.bucket) as job_id
      from trunkline_internal.breakers as b
      where b.bucket = any(p_buckets)
        and b.state <> 'closed'
        and trunkline_internal.breaker_room(p_bucket => b.bucket, p_now => p_now) = 1
      order by b.bucket
      for update
    ) as p
    where b.bucket = p.bucket
    returning b.bucket
  )
  select array_agg(p.bucket) into v_probed from probing as p;
  if v_probed is not null then
    update trunkline_internal.bucket_states as s
    set started_at = array[floor(extract(epoch from p_now) / 60)::bigint], started = array[1]::bigint[]
    where s.bucket = any(v_probed);
  end if;
end;
$$;
comment on function trunkline_internal.begin_probes(bigint[], uuid[], timestamptz) is 'Makes jobs that a claim starts the probes of their buckets'' breakers, if these wait for one; closed breakers stay unchanged.';
