-- Enqueues one job in the caller's transaction; a duplicate returns the existing job and raises its priority.
-- none -> ready | scheduled. Locks: idempotency key, then unique key. The job itself is new and needs no lock.
-- A unique key counts within (tenant, task), or within (profile, tenant) if the task belongs to a profile. There the holder
-- may be a job of another task, and the caller receives a notice. An idempotency key stands for one task and payload.
-- Also notifies when the job is due within a minute, because sleeping workers computed their wake-up time before it
-- existed and poll once a minute.
-- p_accepted: the job follows from accepted work, so it waits where a new request would be refused: at a full or paused
-- queue, a full lane or a spent quota. Callers that act for one tenant cannot set it.
create or replace function trunkline.enqueue(
  p_task text,
  p_payload jsonb default '{}',
  p_queue text default null,
  p_priority integer default null,
  p_run_at timestamptz default null,
  p_delay interval default null,
  p_tenant text default null,
  p_unique_key text default null,
  p_idempotency_key text default null,
  p_correlation_id text default null,
  p_max_attempts integer default null,
  p_tags text[] default null,
  p_cost jsonb default null,
  p_accepted boolean default false,
  p_expires_at timestamptz default null
)
returns trunkline.enqueued
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_admitted record;
  v_fault jsonb;
  v_limited record;
  v_bucket_ids bigint[];
  v_cost_requests bigint;
  v_cost_tokens bigint;
  v_cost_units bigint;
  v_limit_ids integer[];
  v_max_bytes integer;
  v_now timestamptz;
  v_job uuid;
  v_holder uuid;
  v_answer trunkline.enqueued;
  v_policy trunkline_internal.tasks;
  v_priority integer;
  v_queue text;
  v_run_at timestamptz;
  v_state text;
  v_tenant text := trunkline.tenant_scope();
  v_day date;
  v_is_guarded boolean;
  v_is_known boolean;
  v_is_open boolean;
  v_is_special boolean;
  v_sleepers boolean;
begin
  if v_tenant is null then
    v_tenant := p_tenant;
  else
    v_tenant := trunkline_internal.scoped_tenant(p_tenant => p_tenant);
    -- Otherwise a tenant could bypass its own budget.
    if p_accepted then
      perform trunkline_internal.refuse(
        p_name => 'invalid_argument',
        p_detail => jsonb_build_object('argument', 'p_accepted', 'must_be', 'false where the caller acts for one tenant')
      );
    end if;
  end if;
  -- One statement reads everything that an ordinary job needs; separate statements would cost 10 µs each.
  select
    t.task, t.queue, t.profile, t.max_attempts, t.priority, t.audit, t.limits, t.cost,
    exists (select from trunkline_internal.queues as q where q.queue = coalesce(p_queue, t.queue)),
    exists (select from trunkline_internal.sleepers)
  into
    v_policy.task, v_policy.queue, v_policy.profile, v_policy.max_attempts, v_policy.priority, v_policy.audit,
    v_policy.limits, v_policy.cost,
    v_is_special, v_sleepers
  from trunkline_internal.tasks as t
  where t.task = p_task;
  if v_policy.task is null
    or p_payload is null
    or jsonb_typeof(p_payload) <> 'object'
    -- Every inline payload is smaller than the lowest allowed value of the setting max_payload_bytes.
    or pg_column_size(p_payload) > trunkline_internal.inline_limit()
    or pg_column_compression(p_payload) is not null
    or num_nonnulls(
      p_queue, p_priority, p_run_at, p_delay, p_tenant, p_unique_key, p_idempotency_key, p_correlation_id, p_max_attempts, p_tags,
      p_expires_at
    ) > 0
  then
    v_max_bytes := trunkline_internal.setting(p_name => 'max_payload_bytes')::integer;
    v_fault := trunkline_internal.request_fault(
      p_task => p_task, p_payload => p_payload, p_queue => p_queue, p_priority => p_priority,
      p_run_at => p_run_at, p_delay => p_delay, p_tenant => p_tenant, p_unique_key => p_unique_key,
      p_idempotency_key => p_idempotency_key, p_correlation_id => p_correlation_id,
      p_max_attempts => p_max_attempts, p_tags => p_tags, p_max_bytes => v_max_bytes, p_expires_at => p_expires_at,
      p_now => case when p_expires_at is not null then trunkline.clock() end
    );
    if v_fault is not null then
      perform trunkline_internal.refuse_fault(p_fault => v_fault);
    end if;
  end if;
  v_is_known := v_policy.task is not null;
  if not v_is_known then
    v_policy := trunkline_internal.task_policy(p_task => p_task);
    v_is_special := true;
    v_sleepers := true;
  end if;
  v_queue := coalesce(p_queue, v_policy.queue);
  v_priority := coalesce(p_priority, v_policy.priority);
  -- Assign the transaction id before drawing the sequence number and the due time: claims rely on that order to notice
  -- that this transaction was still in progress. (An expression, because PERFORM runs a statement: 3 µs more.)
  v_now := case when pg_current_xact_id() is not null then trunkline.clock() end;
  if p_cost is not null then
    perform trunkline_internal.refuse_fault(
      p_fault => trunkline_internal.cost_fault(p_task => p_task, p_cost => p_cost, p_limits => v_policy.limits)
    );
  end if;
  if cardinality(v_policy.limits) > 0 then
    v_limited := trunkline_internal.resolve_cost(
      p_task => p_task, p_limits => v_policy.limits, p_cost => p_cost, p_default => v_policy.cost, p_payload => p_payload,
      p_tenant => v_tenant, p_queue => v_queue
    );
    v_cost_requests := v_limited.requests;
    v_cost_tokens := v_limited.tokens;
    v_cost_units := v_limited.units;
    v_limit_ids := v_limited.limit_ids;
    v_bucket_ids := v_limited.bucket_ids;
    v_is_guarded := v_limited.is_guarded;
    v_is_open := v_limited.is_open;
  end if;
  v_job := trunkline_internal.new_id(p_now => v_now);
  v_run_at := coalesce(p_run_at, v_now + p_delay, v_now);
  v_state := case when v_run_at > v_now then 'scheduled' else 'ready' end;
  if p_idempotency_key is not null then
    v_answer := trunkline_internal.known_answer(
      p_tenant => v_tenant, p_idempotency_key => p_idempotency_key, p_task => p_task, p_payload => p_payload,
      p_job => v_job, p_run_at => v_run_at, p_now => v_now
    );
    if v_answer.job_id is not null then
      if v_policy.profile <> 'default' then
        perform trunkline_internal.note_other_task(
          p_job => v_answer.job_id, p_task => p_task, p_profile => v_policy.profile, p_unique_key => p_unique_key
        );
      end if;
      return v_answer;
    end if;
  end if;
  if p_unique_key is not null then
    for v_round in 1..3 loop
      v_holder := trunkline_internal.hold_unique_key(
        p_profile => v_policy.profile, p_tenant => v_tenant, p_task => p_task, p_unique_key => p_unique_key, p_job => v_job
      );
      exit when v_holder = v_job;
      perform trunkline_internal.raise_priority(p_job => v_holder, p_priority => v_priority);
      v_answer := trunkline_internal.live_state(p_job => v_holder);
      if v_answer.job_id is not null then
        if p_idempotency_key is not null then
          update trunkline_internal.idempotency_keys as k
          set job_id = v_holder
          where k.tenant = coalesce(v_tenant, '') and k.idempotency_key = p_idempotency_key;
        end if;
        if v_policy.profile <> 'default' then
          perform trunkline_internal.note_other_task(
            p_job => v_holder, p_task => p_task, p_profile => v_policy.profile, p_unique_key => p_unique_key
          );
        end if;
        return v_answer;
      end if;
    end loop;
    if v_holder <> v_job then
      raise exception using errcode = 'serialization_failure', message = 'holder of the unique key kept changing';
    end if;
  end if;
  if v_is_special and p_accepted is not true then
    perform trunkline_internal.check_queue_open(p_queue => v_queue, p_jobs => 1);
  end if;
  -- After the duplicate checks: a repeated request returns its job whatever the limits allow today.
  if v_is_guarded then
    v_admitted := trunkline_internal.admit(
      p_buckets => v_bucket_ids, p_limits => v_limit_ids, p_jobs => array_fill(1::bigint, array[cardinality(v_bucket_ids)]),
      p_priorities => array_fill(v_priority, array[cardinality(v_bucket_ids)]), p_firsts => null,
      p_accepted => coalesce(p_accepted, false), p_now => v_now
    );
    if v_now + v_admitted.longest > v_run_at then
      v_run_at := v_now + v_admitted.longest;
      v_state := 'scheduled';
      if p_idempotency_key is not null then
        update trunkline_internal.idempotency_keys as k
        set run_at = v_run_at
        where k.tenant = coalesce(v_tenant, '') and k.idempotency_key = p_idempotency_key;
      end if;
    end if;
  end if;
  -- Registering a task creates its default lane, and lanes are never removed.
  if not v_is_known or num_nonnulls(p_queue, p_priority) > 0 then
    perform trunkline_internal.ensure_lane(p_queue => v_queue, p_lane => v_priority * 2);
  end if;
  if pg_column_size(p_payload) > trunkline_internal.inline_limit() then
    v_day := (v_now at time zone 'UTC')::date;
    insert into trunkline_internal.bodies (day, job_id, kind, body) values (v_day, v_job, 'payload', p_payload);
  end if;
  insert into trunkline_internal.waiting (
    job_id, sequence, run_at, created_at, payload_day, max_attempts, lane, state, queue, task,
    tenant, payload, bucket, cost_requests, cost_tokens, cost_units, limit_ids, bucket_ids,
    -- <job columns: request to waiting>
    unique_key, correlation_id, tags, expires_at
    -- </job>
  )
  values (
    v_job,
    case when v_state = 'ready' then nextval('trunkline_internal.job_sequence') end,
    v_run_at, v_now, v_day, coalesce(p_max_attempts, v_policy.max_attempts), v_priority * 2, v_state,
    v_queue, p_task, v_tenant,
    case when v_day is null then p_payload end, v_bucket_ids[1], v_cost_requests, v_cost_tokens, v_cost_units,
    v_limit_ids, v_bucket_ids,
    -- <job values: p_>
    p_unique_key, p_correlation_id, p_tags, p_expires_at
    -- </job>
  );
  if num_nonnulls(p_correlation_id, p_tags) > 0 then
    perform trunkline_internal.label_jobs(p_jobs => array[v_job]);
  end if;
  if v_bucket_ids is not null and v_state = 'ready' and not v_is_open then
    -- The same row as open_buckets inserts; calling it would read the job again.
    insert into trunkline_internal.bucket_queues (bucket, limit_id, queue) values (v_bucket_ids[1], v_limit_ids[1], v_queue);
  end if;
  -- If this call waited for a key, a worker may have gone to sleep since v_sleepers was read.
  if (v_sleepers or num_nonnulls(p_unique_key, p_idempotency_key) > 0) and v_run_at <= v_now + interval '1 minute' then
    perform trunkline_internal.wake_sleepers(p_queues => array[v_queue]);
  end if;
  if v_policy.audit then
    perform trunkline_internal.record_event(
      p_at => v_now, p_job => v_job, p_attempt => 0, p_kind => 'enqueued', p_to_state => v_state,
      p_task => p_task, p_queue => v_queue, p_tenant => v_tenant, p_worker => null,
      p_detail => jsonb_build_object('run_at', v_run_at, 'priority', v_priority, 'correlation_id', p_correlation_id)
    );
  end if;
  return row(v_job, true, v_state, v_run_at)::trunkline.enqueued;
end;
$$;
comment on function trunkline.enqueue(text, jsonb, text, integer, timestamptz, interval, text, text, text, text, integer, text[], jsonb, boolean, timestamptz) is 'Enqueues one job in the caller''s transaction; a duplicate returns the existing job and raises its priority.';
