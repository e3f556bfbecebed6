-- Runs a dead letter again under its id with another payload; refuses a payload that enqueue would refuse for its task.
-- dead -> ready. The payload must be an object, not larger than max_payload_bytes, with the keys of the task's limits; the
-- buckets are computed again from it. Whether its fields fit the handler only a worker knows. A unique key is taken again as
-- by retry. The operator log and the event have hashes of both payloads.
-- Locks the row of dead, then what retry locks.
create or replace function trunkline.retry_edited(p_job uuid, p_payload jsonb)
returns trunkline.enqueued
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
  v_answer trunkline.enqueued;
  v_day date;
  v_dead trunkline_internal.dead%rowtype;
  v_hashes jsonb;
  v_limited record;
  v_now timestamptz := trunkline.clock();
  v_policy trunkline_internal.tasks;
  v_request trunkline_internal.request;
  v_scope text := trunkline.tenant_scope();
begin
  perform trunkline_internal.require_read_committed();
  delete from trunkline_internal.dead as d
  where d.job_id = p_job and (v_scope is null or d.tenant = v_scope)
  returning d.* into v_dead;
  if not found then
    perform trunkline_internal.refuse_state(
      p_job => p_job,
      p_state => coalesce(
        trunkline_internal.visible_live_state(p_job => p_job, p_scope => v_scope),
        trunkline_internal.visible_end(p_job => p_job, p_scope => v_scope)
      ),
      p_allowed => array['dead']
    );
  end if;
  v_request.task := v_dead.task;
  v_request.payload := p_payload;
  perform trunkline_internal.check_request(p_request => v_request);
  v_policy := trunkline_internal.task_policy(p_task => v_dead.task);
  if cardinality(v_policy.limits) > 0 then
    v_limited := trunkline_internal.resolve_cost(
      p_task => v_dead.task, p_limits => v_policy.limits,
      p_cost => case
        when v_dead.cost_requests is not null then jsonb_build_object(
          'requests', v_dead.cost_requests, 'tokens', v_dead.cost_tokens, 'units', v_dead.cost_units
        )
      end,
      p_default => v_policy.cost, p_payload => p_payload, p_tenant => v_dead.tenant, p_queue => v_dead.queue
    );
    v_dead.cost_requests := v_limited.requests;
    v_dead.cost_tokens := v_limited.tokens;
    v_dead.cost_units := v_limited.units;
    v_dead.limit_ids := v_limited.limit_ids;
    v_dead.bucket_ids := v_limited.bucket_ids;
  end if;
  v_hashes := jsonb_build_object(
    'payload_sha256_before', encode(sha256(convert_to(coalesce(v_dead.payload, (
      select b.body from trunkline_internal.bodies as b
      where b.job_id = p_job and b.kind = 'payload' and b.day = v_dead.payload_day
    ))::text, 'UTF8')), 'hex'),
    'payload_sha256_after', encode(sha256(convert_to(p_payload::text, 'UTF8')), 'hex')
  );
  delete from trunkline_internal.bodies as b
  where b.job_id = p_job and b.kind = 'payload' and b.day = v_dead.payload_day;
  if pg_column_size(p_payload) > trunkline_internal.inline_limit() then
    v_day := (v_now at time zone 'UTC')::date;
    insert into trunkline_internal.bodies (day, job_id, kind, body) values (v_day, p_job, 'payload', p_payload);
  end if;
  v_dead.payload_day := v_day;
  v_dead.payload := case when v_day is null then p_payload end;
  v_answer := trunkline_internal.replay(p_dead => v_dead, p_detail => v_hashes);
  perform trunkline_internal.log_action(
    p_action => 'retry_edited', p_kind => 'job', p_object => p_job::text,
    p_before => jsonb_build_object(
      'state', 'dead', 'task', v_dead.task, 'reason', v_dead.reason, 'payload_sha256', v_hashes -> 'payload_sha256_before'
    ),
    p_after => jsonb_build_object(
      'state', 'ready', 'task', v_dead.task, 'payload_sha256', v_hashes -> 'payload_sha256_after'
    ),
    p_tenant => v_dead.tenant
  );
  return v_answer;
end;
$$;
comment on function trunkline.retry_edited(uuid, jsonb) is 'Runs a dead letter again under its id with another payload; refuses a payload that enqueue would refuse for its task.';
