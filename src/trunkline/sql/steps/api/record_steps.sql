-- Records results of steps of running attempts, each once; returns a verdict for each in the order of the request: ok, cancel or lost.
-- Ok: recorded, or recorded by an earlier delivery of the same call. Cancel: recorded, but the attempt has to stop; this is
-- noted with the attempt, as in heartbeat. Lost: another attempt owns the job, and nothing was recorded.
-- Locks the rows of running in id order so that no attempt ends before the commit. Heartbeats do not wait for that.
create or replace function trunkline.record_steps(
  p_worker text,
  p_jobs uuid[],
  p_attempts integer[],
  p_places integer[],
  p_names text[],
  p_keys text[],
  p_hashes bigint[],
  p_results jsonb[]
)
returns text[]
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_attempts integer[];
  v_cancelled uuid[];
  v_has_files boolean;
  v_held uuid[];
  v_jobs uuid[];
  v_now timestamptz;
  v_scope text := trunkline.tenant_scope();
begin
  perform trunkline_internal.check_batch(
    p_worker => p_worker, p_jobs => p_jobs, p_attempts => p_attempts,
    p_others => array[
      cardinality(p_places), cardinality(p_names), cardinality(p_keys), cardinality(p_hashes), cardinality(p_results)
    ]
  );
  perform trunkline_internal.check_recording(
    p_jobs => p_jobs, p_names => p_names, p_keys => p_keys, p_places => p_places, p_results => p_results
  );
  select array_agg(a.job_id order by a.job_id), array_agg(a.attempt order by a.job_id)
  into v_jobs, v_attempts
  from (
    select a.job_id, max(a.attempt) as attempt from unnest(p_jobs, p_attempts) as a (job_id, attempt) group by a.job_id
  ) as a;
  with held as materialized (
    select r.job_id, r.cancel_requested_at, r.has_files
    from trunkline_internal.running as r
    where r.job_id = any(v_jobs)
      and r.attempt = v_attempts[width_bucket(r.job_id, v_jobs)]
      and r.worker = p_worker
      and (v_scope is null or r.tenant = v_scope)
    order by r.job_id
    for key share of r
  )
  select array_agg(h.job_id), array_agg(h.job_id) filter (where h.cancel_requested_at is not null), bool_or(h.has_files)
  into v_held, v_cancelled, v_has_files
  from held as h;
  v_now := trunkline.clock();
  insert into trunkline_internal.recorded_steps (
    day, recorded_at, job_id, arguments_hash, attempt, place, kind, name, key, result
  )
  select (v_now at time zone 'UTC')::date, v_now, a.job_id, a.hash, a.attempt, a.place, 'step', a.name, a.key, a.result
  from unnest(p_jobs, p_attempts, p_places, p_names, p_keys, p_hashes, p_results)
    as a (job_id, attempt, place, name, key, hash, result)
  where a.job_id = any(v_held) and a.attempt = v_attempts[width_bucket(a.job_id, v_jobs)]
  on conflict do nothing;
  if v_has_files then
    perform trunkline_internal.keep_artifacts(
      p_jobs => array_agg(a.job_id), p_attempts => array_agg(a.attempt), p_steps => array_agg(a.name),
      p_keys => array_agg(a.key)
    )
    from unnest(p_jobs, p_attempts, p_names, p_keys) as a (job_id, attempt, name, key)
    where a.job_id = any(v_held) and a.attempt = v_attempts[width_bucket(a.job_id, v_jobs)];
  end if;
  if v_cancelled is not null then
    update trunkline_internal.running as r
    set cancel_answered_at = coalesce(r.cancel_answered_at, v_now)
    where r.job_id = any(v_cancelled);
  end if;
  return array(
    select case
      when a.job_id <> all(coalesce(v_held, '{}')) or a.attempt <> v_attempts[width_bucket(a.job_id, v_jobs)] then 'lost'
      when a.job_id = any(v_cancelled) then 'cancel'
      else 'ok'
    end
    from unnest(p_jobs, p_attempts) with ordinality as a (job_id, attempt, place)
    order by a.place
  );
end;
$$;
comment on function trunkline.record_steps(text, uuid[], integer[], integer[], text[], text[], bigint[], jsonb[]) is 'Records results of steps of running attempts, each once; returns a verdict for each in the order of the request: ok, cancel or lost.';
