-- Asks buckets whether they admit new jobs: returns by how much each bucket delays its jobs, or refuses them.
-- A bucket delays jobs by backpressure_delay above a share of its minute, and if as many jobs wait as its depth limit
-- allows and it does not refuse further ones. A limit that is not active delays nothing: its jobs wait at the claim. A
-- spent quota, or too many waiting jobs, is a refusal, unless the job was accepted before; then it waits at the claim too.
-- p_jobs is the number of jobs for each bucket, p_priorities their lowest priority, and p_firsts the index of the first.
-- Zero jobs: all of them wait for a step of their workflow and are not refused.
-- p_names: the filled-in name of each bucket, if the caller's statement stores them just now; else they are looked up.
-- is_partial: a bucket treats its jobs differently, so that each of them has to be admitted alone. Never for one job.
create or replace function trunkline_internal.admit(
  p_buckets bigint[],
  p_limits integer[],
  p_jobs bigint[],
  p_priorities integer[],
  p_firsts bigint[],
  p_accepted boolean,
  p_now timestamptz,
  p_names text[] default null,
  out delays interval[],
  out longest interval,
  out is_partial boolean
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_bucket record;
  v_delay interval;
  v_is_low_spent boolean;
  v_limit trunkline_internal.limits;
  v_place integer;
begin
  is_partial := false;
  for v_bucket in
    select p.bucket, p.allowed, p.delay, p.waiting, p.is_spent, p.is_low_spent
    from trunkline_internal.bucket_pressure(p_buckets => p_buckets, p_limits => p_limits, p_now => p_now) as p
  loop
    v_limit := v_bucket.allowed;
    v_place := array_position(p_buckets, v_bucket.bucket);
    v_delay := v_bucket.delay;
    v_is_low_spent := v_bucket.is_low_spent and p_priorities[v_place] < v_limit.quota_low_below;
    if (v_bucket.is_spent or v_is_low_spent) and not p_accepted and p_jobs[v_place] > 0 then
      if v_bucket.is_spent or p_jobs[v_place] = 1 then
        perform trunkline_internal.refuse_spent(
          p_bucket => v_bucket.bucket, p_limit => v_limit, p_is_low => not v_bucket.is_spent, p_now => p_now,
          p_index => p_firsts[v_place], p_name => p_names[v_place]
        );
      end if;
      is_partial := true;
    end if;
    if v_bucket.waiting + p_jobs[v_place] > v_limit.depth_limit then
      if v_limit.depth_refuses and not p_accepted then
        perform trunkline_internal.refuse_full(
          p_bucket => v_bucket.bucket, p_limit => v_limit, p_waiting => v_bucket.waiting, p_jobs => p_jobs[v_place],
          p_name => p_names[v_place]
        );
      elsif not v_limit.depth_refuses and v_limit.status = 'active' then
        v_delay := greatest(v_delay, coalesce(v_limit.backpressure_delay, interval '5 seconds'));
        is_partial := is_partial or v_bucket.waiting < v_limit.depth_limit;
      end if;
    end if;
    delays[v_place] := v_delay;
    longest := greatest(longest, v_delay);
  end loop;
end;
$$;
comment on function trunkline_internal.admit(bigint[], integer[], bigint[], integer[], bigint[], boolean, timestamptz, text[]) is 'Asks buckets whether they admit new jobs: returns by how much each bucket delays its jobs, or refuses them.';
