-- Ends running attempts of a worker as completed, with their results; returns per job ok, cancel, lost or already.
-- running -> completed. Locks its rows in id order. A stale attempt changes nothing; with p_strict it
-- is refused, so that what else the caller wrote in the transaction is rolled back with it.
-- running -> cancelled if a heartbeat or progress call has returned cancel for the attempt: the
-- verdict is cancel and the result is dropped; with p_strict the call is refused. A request that the
-- worker has not received yet changes nothing: the work was finished first.
-- Names no state: the row in running is the state, and (job, attempt, worker) is the fence.
-- Finds its rows by an array sorted by id, not by a join: where autovacuum met running while it was
-- empty, a join took it as its outer side and read it from end to end (82 ms instead of 1.3 for 100
-- jobs with 50,000 running). The index is walked in id order, so that is the order of the locks.
create or replace function trunkline.complete(
  p_worker text,
  p_jobs uuid[],
  p_attempts integer[],
  p_results jsonb[] default null,
  p_strict boolean default false
)
returns setof trunkline.verdict
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
  v_audited uuid[];
  v_cancelled uuid[];
  v_costly trunkline_internal.costly_attempt[];
  v_done uuid[];
  v_freed trunkline_internal.costly_attempt[];
  v_jobs uuid[];
  v_keyed uuid[];
  v_large boolean := false;
  v_late trunkline_internal.costly_attempt[];
  v_limited text[];
  v_max_bytes integer;
  v_now timestamptz;
  v_results jsonb[];
  v_scope text := trunkline.tenant_scope();
  v_staged boolean;
  v_steps trunkline_internal.workflow_end[];
begin
  perform trunkline_internal.check_batch(
    p_worker => p_worker, p_jobs => p_jobs, p_attempts => p_attempts, p_others => array[cardinality(p_results)]
  );
  if pg_column_size(p_results) > trunkline_internal.inline_limit() then
    v_max_bytes := trunkline_internal.setting(p_name => 'max_payload_bytes')::integer;
    if pg_column_size(p_results) > 268435456 then
      perform trunkline_internal.refuse(
        p_name => 'payload_too_large',
        p_detail => jsonb_build_object('bytes', pg_column_size(p_results), 'max_batch_bytes', 268435456)
      );
    end if;
    select coalesce(bool_or(pg_column_size(r.result) > trunkline_internal.inline_limit()), false)
    into v_large
    from unnest(p_results) as r (result);
    if v_large then
      perform trunkline_internal.check_results(p_jobs => p_jobs, p_results => p_results, p_max_bytes => v_max_bytes);
    end if;
  end if;
  -- Of a job named twice the look-up below finds the last, so the higher attempt: no other can live.
  select array_agg(a.job_id), array_agg(a.attempt), array_agg(a.result)
  into v_jobs, v_attempts, v_results
  from (
    select a.job_id, a.attempt, a.result
    from unnest(p_jobs, p_attempts, p_results) as a (job_id, attempt, result)
    order by a.job_id, a.attempt
  ) as a;
  v_now := trunkline.clock();
  with ended as (
    delete from trunkline_internal.running as r
    where r.job_id = any(v_jobs)
      and r.attempt = v_attempts[width_bucket(r.job_id, v_jobs)]
      and r.worker = p_worker
      and (v_scope is null or r.tenant = v_scope)
    -- Only what is read below, because the statement stores these rows: with all columns the function takes 3 % longer.
    returning
      -- <job read: r as e in running>
      r.job_id, r.task, r.queue, r.tenant, r.attempt, r.failures, r.max_attempts, r.deferrals, r.created_at, r.run_at,
      r.claimed_at, r.heartbeat_at, r.worker, r.unique_key, r.correlation_id, r.retry_of, r.tags, r.last_error, r.payload,
      r.payload_day, r.lane, r.audit, r.cancel_reason, r.cancel_answered_at, r.cost_requests, r.cost_tokens, r.cost_units,
      r.limit_ids, r.bucket_ids, r.expires_at, r.workflow_id, r.workflow_step, r.workflow_item, r.has_files,
      -- </job>
      case when r.cancel_answered_at is null then v_results[width_bucket(r.job_id, v_jobs)] end as result
  ),
  kept as (
    insert into trunkline_internal.finished (
      finished_at, state, reason, result, result_day,
      -- <job columns: running to finished>
      job_id, task, queue, priority, tenant, attempt, failures, max_attempts, deferrals, created_at, run_at, claimed_at,
      heartbeat_at, worker, unique_key, correlation_id, retry_of, tags, last_error, payload, payload_day, expires_at,
      workflow_id, workflow_step, workflow_item
      -- </job>
    )
    select
      v_now,
      case when e.cancel_answered_at is null then 'completed' else 'cancelled' end,
      case when e.cancel_answered_at is not null then coalesce(e.cancel_reason, 'cancelled') end,
      case when not v_large or pg_column_size(e.result) <= trunkline_internal.inline_limit() then e.result end,
      case when v_large and pg_column_size(e.result) > trunkline_internal.inline_limit() then (v_now at time zone 'UTC')::date end,
      -- <job values: e>
      e.job_id, e.task, e.queue, e.lane >> 1, e.tenant, e.attempt, e.failures, e.max_attempts, e.deferrals, e.created_at,
      e.run_at, e.claimed_at, e.heartbeat_at, e.worker, e.unique_key, e.correlation_id, e.retry_of, e.tags, e.last_error,
      e.payload, e.payload_day, e.expires_at, e.workflow_id, e.workflow_step, e.workflow_item
      -- </job>
    from ended as e
  )
  select
    array_agg(e.job_id),
    array_agg(e.job_id) filter (where e.cancel_answered_at is not null),
    array_agg(e.job_id) filter (where e.unique_key is not null),
    array_agg(e.job_id) filter (where e.audit or e.cancel_answered_at is not null),
    array_agg(e.queue) filter (where e.bucket_ids is not null),
    array_agg(row(
      -- <job shape: costly_attempt of e in running>
      e.job_id, e.attempt, e.task, e.tenant, e.cost_requests, e.cost_tokens, e.cost_units, e.limit_ids, e.bucket_ids,
      e.claimed_at
      -- </job>
    )::trunkline_internal.costly_attempt)
      filter (where e.cost_tokens > 0 or e.cost_units > 0),
    -- Looked at once, and by limited jobs alone: while all are busy this is nothing.
    array_agg(row(
      -- <job shape: costly_attempt of e in running>
      e.job_id, e.attempt, e.task, e.tenant, e.cost_requests, e.cost_tokens, e.cost_units, e.limit_ids, e.bucket_ids,
      e.claimed_at
      -- </job>
    )::trunkline_internal.costly_attempt)
      filter (where e.bucket_ids is not null and (select exists (select from trunkline_internal.sleepers))),
    -- The shortest run time that note_late counts; few limited jobs take that long.
    array_agg(row(
      -- <job shape: costly_attempt of e in running>
      e.job_id, e.attempt, e.task, e.tenant, e.cost_requests, e.cost_tokens, e.cost_units, e.limit_ids, e.bucket_ids,
      e.claimed_at
      -- </job>
    )::trunkline_internal.costly_attempt)
      filter (where e.bucket_ids is not null and e.claimed_at < v_now - interval '15 seconds'),
    array_agg(row(
      e.workflow_id, e.workflow_step, e.workflow_item, e.job_id,
      case when e.cancel_answered_at is null then 'completed' else 'cancelled' end, null, null, null, null, null
    )::trunkline_internal.workflow_end)
      filter (where e.workflow_id is not null),
    -- A later attempt may publish what a recorded step of an earlier one has uploaded.
    bool_or(e.has_files or e.attempt > 1)
  into v_done, v_cancelled, v_keyed, v_audited, v_limited, v_costly, v_freed, v_late, v_steps, v_staged
  from ended as e;
  -- Separate statements for what few jobs need: within the statement above, these three would open two partitioned
  -- tables for every batch, a tenth of the whole.
  if v_large then
    insert into trunkline_internal.bodies (day, job_id, kind, body)
    select (v_now at time zone 'UTC')::date, a.job_id, 'result', v_results[width_bucket(a.job_id, v_jobs)]
    from unnest(v_done) as a (job_id)
    where a.job_id <> all(coalesce(v_cancelled, '{}'))
      and pg_column_size(v_results[width_bucket(a.job_id, v_jobs)]) > trunkline_internal.inline_limit();
  end if;
  if v_staged then
    perform trunkline_internal.publish_artifacts(
      p_jobs => array(select a.job_id from unnest(v_done) as a (job_id) where a.job_id <> all(coalesce(v_cancelled, '{}'))),
      p_now => v_now
    );
  end if;
  if v_keyed is not null then
    delete from trunkline_internal.unique_keys as k where k.job_id = any(v_keyed);
  end if;
  if v_limited is not null then
    -- Their capacity came free, and one of them may have been a probe.
    perform trunkline_internal.wake_freed(p_jobs => v_done, p_queues => v_limited, p_ended => v_freed);
    perform trunkline_internal.close_breakers(
      p_jobs => case when v_cancelled is null then v_done else array(
        select a.job_id from unnest(v_done) as a (job_id) where a.job_id <> all(v_cancelled)
      ) end,
      p_now => v_now
    );
  end if;
  if v_late is not null then
    perform trunkline_internal.note_late(p_ended => v_late, p_now => v_now);
  end if;
  if v_costly is not null then
    perform trunkline_internal.record_estimates(p_ended => v_costly, p_now => v_now);
  end if;
  if v_audited is not null then
    insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, worker, actor, detail)
    select
      v_now, f.job_id, f.attempt, f.state, f.state, f.task, f.queue, f.tenant, f.worker, session_user,
      case when f.state = 'cancelled' then jsonb_build_object('reason', f.reason) end
    from trunkline_internal.finished as f
    where f.job_id = any(v_audited) and f.finished_at = v_now;
  end if;
  if exists (select from trunkline_internal.followed) then
    perform trunkline_internal.notify_followers(p_ids => v_done);
  end if;
  -- Last, because the lock of a workflow comes after all rows and keys.
  if v_steps is not null then
    perform trunkline_internal.end_workflow_jobs(p_ended => v_steps, p_now => v_now);
  end if;
  if cardinality(v_done) = cardinality(p_jobs) and v_cancelled is null then
    return query
    select a.job_id, a.attempt, 'ok', 'completed', null::timestamptz
    from unnest(p_jobs, p_attempts) as a (job_id, attempt);
    return;
  end if;
  return query
  select v.* from trunkline_internal.unmatched_verdicts(
    p_worker => p_worker, p_jobs => p_jobs, p_attempts => p_attempts, p_done => v_done,
    p_cancelled => v_cancelled, p_strict => p_strict
  ) as v;
end;
$$;
comment on function trunkline.complete(text, uuid[], integer[], jsonb[], boolean) is 'Ends running attempts of a worker as completed, with their results; returns per job ok, cancel, lost or already.';
