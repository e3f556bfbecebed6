-- Creates or replaces a schedule; keeps its pause unless p_paused is given, and its next due time unless cron, time zone or pause changes.
-- none -> active | paused, active <-> paused. Locks the schedule's row, so it waits for a run in progress. A due time that
-- the new expression does not contain is no longer enqueued.
create or replace function trunkline.set_schedule(
  p_schedule text,
  p_cron text,
  p_task text,
  p_payload jsonb default '{}',
  p_time_zone text default 'UTC',
  p_queue text default null,
  p_priority integer default null,
  p_tenant text default null,
  p_missed text default 'once',
  p_paused boolean default null
)
returns trunkline.schedule_change
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
  v_before jsonb;
  v_now timestamptz := trunkline.clock();
  v_scope text := trunkline.tenant_scope();
  v_tenant text := trunkline_internal.scoped_tenant(p_tenant => p_tenant);
  v_time_zone text := coalesce(p_time_zone, 'UTC');
  v_next timestamptz;
  v_change trunkline.schedule_change;
  v_policy trunkline_internal.tasks;
  v_request trunkline_internal.request;
  v_template text;
begin
  -- Jobs of a schedule have the tag schedule:<name>, and a tag has at most 200 bytes.
  if p_schedule is null or p_schedule = '' or octet_length(p_schedule) > 191 then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_schedule', 'must_be', '1 to 191 bytes')
    );
  end if;
  if p_missed not in ('skip', 'once', 'all') then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_missed', 'value', p_missed, 'must_be', 'skip, once or all')
    );
  end if;
  -- Refuse now, with the same code, what every enqueue would refuse.
  v_request.task := p_task;
  v_request.payload := p_payload;
  v_request.queue := p_queue;
  v_request.priority := p_priority;
  v_request.tenant := v_tenant;
  -- The longest key that run_schedule builds.
  v_request.idempotency_key := 'schedule:' || p_schedule || ':2000-01-01T00:00:00Z';
  perform trunkline_internal.check_request(p_request => v_request);
  v_policy := trunkline_internal.task_policy(p_task => p_task);
  -- A limit may be created or raised later, but a key that the payload lacks stays missing.
  select l.template into v_template
  from unnest(v_policy.limits) as l (template)
  where coalesce(octet_length(
    trunkline_internal.fill_limit_name(p_template => l.template, p_payload => p_payload, p_tenant => v_tenant)
  ) > 400, true)
  limit 1;
  if found then
    perform trunkline_internal.refuse(
      p_name => 'limit_key_missing', p_detail => jsonb_build_object('task', p_task, 'limit', v_template)
    );
  end if;
  v_next := trunkline_internal.cron_next(p_cron => p_cron, p_time_zone => v_time_zone, p_after => v_now);

  v_before := trunkline_internal.operated_state(p_kind => 'schedule', p_object => p_schedule);
  insert into trunkline_internal.schedules as s (
    schedule, cron, time_zone, task, payload, queue, priority, tenant, missed, paused, next_run_at, created_at, updated_at
  )
  values (
    p_schedule, p_cron, v_time_zone, p_task, p_payload, p_queue, p_priority, v_tenant, coalesce(p_missed, 'once'),
    coalesce(p_paused, false), case when not coalesce(p_paused, false) then v_next end, v_now, v_now
  )
  on conflict (schedule) do update
  set
    cron = excluded.cron,
    time_zone = excluded.time_zone,
    task = excluded.task,
    payload = excluded.payload,
    queue = excluded.queue,
    priority = excluded.priority,
    tenant = excluded.tenant,
    missed = excluded.missed,
    -- Code that sets its schedules at every start must not undo an operator's pause, not even one that
    -- commits while this call waits for the row.
    paused = coalesce(p_paused, s.paused),
    next_run_at = case
      when coalesce(p_paused, s.paused) then null
      when s.paused or s.cron <> excluded.cron or s.time_zone <> excluded.time_zone then v_next
      else s.next_run_at
    end,
    last_error = null,
    last_error_at = null,
    updated_at = excluded.updated_at
  where v_scope is null or s.tenant = v_scope
  -- xmax is zero only in an inserted row: an existing row was locked before its update.
  returning s.schedule, s.xmax = 0, s.paused, s.next_run_at into v_change;
  if not found then
    perform trunkline_internal.refuse(
      p_name => 'tenant_denied',
      p_detail => jsonb_build_object('schedule', p_schedule, 'tenant', v_tenant)
    );
  end if;
  perform trunkline_internal.log_change(
    p_action => 'set_schedule', p_kind => 'schedule', p_object => p_schedule, p_before => v_before
  );
  return v_change;
end;
$$;
comment on function trunkline.set_schedule(text, text, text, jsonb, text, text, integer, text, text, boolean) is 'Creates or replaces a schedule; keeps its pause unless p_paused is given, and its next due time unless cron, time zone or pause changes.';
