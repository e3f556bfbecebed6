-- Appends one event about a job, with the session user as actor.
create or replace function trunkline_internal.record_event(
  p_at timestamptz,
  p_job uuid,
  p_attempt integer,
  p_kind text,
  p_to_state text,
  p_task text,
  p_queue text,
  p_tenant text,
  p_worker text,
  p_detail jsonb
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, worker, actor, detail)
  values (p_at, p_job, p_attempt, p_kind, p_to_state, p_task, p_queue, p_tenant, p_worker, session_user, p_detail);
end;
$$;
comment on function trunkline_internal.record_event(timestamptz, uuid, integer, text, text, text, text, text, text, jsonb) is 'Appends one event about a job, with the session user as actor.';
