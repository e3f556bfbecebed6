-- Returns what an operator can change about a queue, limit, setting, schedule, duty or worker; null if there is none of the name.
-- Locks the row, except that of a limit, which set_limit locks after others. A payload is shown as its hash.
create or replace function trunkline_internal.operated_state(p_kind text, p_object text)
returns jsonb
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
set datestyle = 'ISO'
set intervalstyle = 'postgres'
as $$
declare
  v_state jsonb;
begin
  case p_kind
    when 'queue' then
      select to_jsonb(q) - '{queue,paused_at,paused_by}'::text[]
      into v_state
      from trunkline_internal.queues as q
      where q.queue = p_object
      for update;
    when 'limit' then
      select jsonb_strip_nulls(
        to_jsonb(l) - '{limit_id,name,bucket,created_at,updated_at,updated_by,declared,share_group,slots_only}'::text[]
      )
      into v_state
      from trunkline_internal.limits as l
      where l.name = p_object;
    when 'setting' then
      select jsonb_build_object('value', coalesce(s.value, s.default_value))
      into v_state
      from trunkline_internal.settings as s
      where s.name = p_object
      for update;
    when 'schedule' then
      select
        to_jsonb(s)
        - '{schedule,payload,next_run_at,last_run_at,last_job_id,last_error,last_error_at,skipped,created_at,updated_at}'::text[]
        || jsonb_build_object('payload_sha256', encode(sha256(convert_to(s.payload::text, 'UTF8')), 'hex'))
      into v_state
      from trunkline_internal.schedules as s
      where s.schedule = p_object
      for update;
    when 'duty' then
      select jsonb_build_object(
        'function', d.function, 'every', d.every, 'description', d.description, 'enabled', d.enabled
      )
      into v_state
      from trunkline_internal.duties as d
      where d.duty = p_object
      for update;
    when 'worker' then
      select jsonb_strip_nulls(jsonb_build_object('state', w.state, 'tenant', w.tenant))
      into v_state
      from trunkline_internal.workers as w
      where w.worker = p_object
      for update;
  end case;
  return v_state;
end;
$$;
comment on function trunkline_internal.operated_state(text, text) is 'Returns what an operator can change about a queue, limit, setting, schedule, duty or worker; null if there is none of the name.';
