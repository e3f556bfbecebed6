-- Puts those of these jobs that are dead letters back to ready, oldest first, with failures, crashes and deferrals at zero; returns which.
-- dead -> ready. A job whose unique key another live job holds stays dead; of two with the same key the newer one is replayed.
-- Attempt numbers continue, since they are the fence. Replayed jobs do not expire.
-- Locks rows of dead in id order, then unique keys in their order, as retry does.
create or replace function trunkline_internal.replay_dead(p_jobs uuid[], p_scope text, out replayed uuid[], out held uuid[])
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_free uuid[];
  v_keyed uuid[];
  v_now timestamptz := trunkline.clock();
begin
  replayed := array(
    select d.job_id
    from trunkline_internal.dead as d
    where d.job_id = any(p_jobs) and (p_scope is null or d.tenant = p_scope)
    order by d.job_id
    for update of d
  );
  v_keyed := array(
    select d.job_id from trunkline_internal.dead as d where d.job_id = any(replayed) and d.unique_key is not null
  );
  if cardinality(v_keyed) > 0 then
    with taken as (
      insert into trunkline_internal.unique_keys (profile, tenant, task, unique_key, job_id)
      select k.profile, k.tenant, k.task, k.unique_key, k.job_id
      from (
        select
          coalesce(t.profile, 'default') as profile, coalesce(d.tenant, '') as tenant,
          case when coalesce(t.profile, 'default') = 'default' then d.task else '' end as task, d.unique_key, d.job_id
        from trunkline_internal.dead as d
        left join trunkline_internal.tasks as t on t.task = d.task
        where d.job_id = any(v_keyed)
      ) as k
      order by k.profile, k.tenant, k.task, k.unique_key, k.job_id desc
      on conflict do nothing
      returning job_id
    )
    select array_agg(k.job_id) into v_free from taken as k;
  end if;
  held := trunkline_internal.without_ids(p_ids => v_keyed, p_others => v_free);
  replayed := trunkline_internal.without_ids(p_ids => replayed, p_others => held);
  if cardinality(replayed) = 0 then
    return;
  end if;
  insert into trunkline_internal.lanes (queue, lane)
  select distinct d.queue, (d.priority * 2)::smallint
  from trunkline_internal.dead as d
  where d.job_id = any(replayed)
    and not exists (select from trunkline_internal.lanes as l where l.queue = d.queue and l.lane = d.priority * 2);
  insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, actor, detail)
  select
    v_now, d.job_id, d.attempt, 'replayed', 'ready', d.task, d.queue, d.tenant, session_user,
    jsonb_build_object('reason_of_death', d.reason, 'failures', d.failures)
  from trunkline_internal.dead as d
  where d.job_id = any(replayed);
  with gone as (
    delete from trunkline_internal.dead as d where d.job_id = any(replayed) returning d.*
  )
  insert into trunkline_internal.waiting (
    state, reason, run_at, sequence, failures, crashes, deferrals, expires_at,
    -- <job columns: dead to waiting>
    job_id, task, queue, tenant, attempt, max_attempts, created_at, unique_key, correlation_id, retry_of, tags, last_error,
    payload, payload_day, lane, bucket, cost_requests, cost_tokens, cost_units, limit_ids, bucket_ids, workflow_id,
    workflow_step, workflow_item
    -- </job>
  )
  select
    'ready', 'replayed', v_now, nextval('trunkline_internal.job_sequence'), 0, 0, 0, null,
    -- <job values: g>
    g.job_id, g.task, g.queue, g.tenant, g.attempt, g.max_attempts, g.created_at, g.unique_key, g.correlation_id, g.retry_of,
    g.tags, g.last_error, g.payload, g.payload_day, g.priority * 2, g.bucket_ids[1], g.cost_requests, g.cost_tokens,
    g.cost_units, g.limit_ids, g.bucket_ids, g.workflow_id, g.workflow_step, g.workflow_item
    -- </job>
  from (select g.* from gone as g order by g.job_id) as g;
  perform trunkline_internal.open_buckets(p_jobs => replayed);
  perform trunkline_internal.wake_sleepers(p_queues => array(
    select distinct w.queue from trunkline_internal.waiting as w where w.job_id = any(replayed)
  ));
  perform trunkline_internal.notify_followers(p_ids => replayed);
  perform trunkline_internal.reopen_jobs(p_jobs => replayed, p_now => v_now);
end;
$$;
comment on function trunkline_internal.replay_dead(uuid[], text) is 'Puts those of these jobs that are dead letters back to ready, oldest first, with failures, crashes and deferrals at zero; returns which.';
