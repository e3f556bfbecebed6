-- Sends waiting jobs whose id is running already to dead under a new id, with an event that names the old one.
-- ready -> dead. The other jobs of the failed claim stay ready; the caller's position starts again.
create or replace function trunkline_internal.bury_collisions(p_tids tid[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ended trunkline_internal.workflow_end[];
begin
  with taken as (
    delete from trunkline_internal.waiting as w
    using trunkline_internal.running as r
    where w.ctid = any(p_tids) and r.job_id = w.job_id
    returning w.*
  ),
  renamed as materialized (
    select t.*, trunkline_internal.new_id(p_now => p_now) as new_id from taken as t
  ),
  rebodied as (
    insert into trunkline_internal.bodies (day, job_id, kind, body)
    select (p_now at time zone 'UTC')::date, n.new_id, 'payload', b.body
    from renamed as n
    join trunkline_internal.bodies as b on b.job_id = n.job_id and b.kind = 'payload' and b.day = n.payload_day
  ),
  buried as (
    insert into trunkline_internal.dead (
      job_id, died_at, reason, payload_day, error_group,
      -- <job columns: waiting to dead>
      task, queue, priority, tenant, attempt, failures, max_attempts, deferrals, created_at, run_at, unique_key,
      correlation_id, retry_of, tags, last_error, payload, crashes, cost_requests, cost_tokens, cost_units, limit_ids,
      bucket_ids, expires_at, workflow_id, workflow_step, workflow_item
      -- </job>
    )
    select
      n.new_id, p_now, 'id_collision', case when n.payload_day is not null then (p_now at time zone 'UTC')::date end,
      trunkline_internal.error_group_of(p_error => n.last_error, p_reason => 'id_collision'),
      -- <job values: n>
      n.task, n.queue, n.lane >> 1, n.tenant, n.attempt, n.failures, n.max_attempts, n.deferrals, n.created_at, n.run_at,
      n.unique_key, n.correlation_id, n.retry_of, n.tags, n.last_error, n.payload, n.crashes, n.cost_requests, n.cost_tokens,
      n.cost_units, n.limit_ids, n.bucket_ids, n.expires_at, n.workflow_id, n.workflow_step, n.workflow_item
      -- </job>
    from renamed as n
  ),
  noted as (
    insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, actor, detail)
    select
      p_now, n.new_id, n.attempt, 'collided', 'dead', n.task, n.queue, n.tenant, session_user,
      jsonb_build_object('running_job', n.job_id)
    from renamed as n
  )
  select array_agg(row(
    n.workflow_id, n.workflow_step, n.workflow_item, n.new_id, 'dead', null, null, null, null, null
  )::trunkline_internal.workflow_end) filter (where n.workflow_id is not null)
  into v_ended
  from renamed as n;
  if v_ended is not null then
    perform trunkline_internal.end_workflow_jobs(p_ended => v_ended, p_now => p_now, p_wait => false);
  end if;
end;
$$;
comment on function trunkline_internal.bury_collisions(tid[], timestamptz) is 'Sends waiting jobs whose id is running already to dead under a new id, with an event that names the old one.';
