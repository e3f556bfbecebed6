-- Stops claims from a queue and, with p_refuse_enqueue, refuses new jobs as well. Running jobs continue.
create or replace function trunkline.pause_queue(
  p_queue text,
  p_reason text default null,
  p_refuse_enqueue boolean default false
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before jsonb;
begin
  perform trunkline_internal.require_all_tenants(p_detail => jsonb_build_object('queue', p_queue));
  perform trunkline_internal.check_queue_name(p_queue => p_queue);
  v_before := trunkline_internal.operated_state(p_kind => 'queue', p_object => p_queue);
  insert into trunkline_internal.queues as q (queue, paused, refuse_enqueue, paused_at, paused_by, reason)
  values (p_queue, true, coalesce(p_refuse_enqueue, false), trunkline.clock(), session_user, left(p_reason, 500))
  on conflict (queue) do update
  set
    paused = true,
    refuse_enqueue = excluded.refuse_enqueue,
    paused_at = coalesce(q.paused_at, excluded.paused_at),
    paused_by = excluded.paused_by,
    reason = excluded.reason;
  perform trunkline_internal.log_change(
    p_action => 'pause_queue', p_kind => 'queue', p_object => p_queue, p_before => v_before, p_reason => p_reason
  );
end;
$$;
comment on function trunkline.pause_queue(text, text, boolean) is 'Stops claims from a queue and, with p_refuse_enqueue, refuses new jobs as well. Running jobs continue.';
