-- Allows claims and new jobs in a queue again; returns whether it was paused.
create or replace function trunkline.resume_queue(p_queue text)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before jsonb;
begin
  perform trunkline_internal.require_all_tenants(p_detail => jsonb_build_object('queue', p_queue));
  if not exists (
    select from trunkline_internal.queues as q where q.queue = p_queue
    union all
    select from trunkline_internal.lanes as l where l.queue = p_queue
  ) then
    perform trunkline_internal.refuse(
      p_name => 'unknown_queue',
      p_detail => jsonb_build_object(
        'queue', p_queue,
        'known', coalesce((
          select jsonb_agg(n.queue order by n.queue)
          from (
            select q.queue from trunkline_internal.queues as q
            union
            select l.queue from trunkline_internal.lanes as l
          ) as n
        ), '[]'::jsonb)
      )
    );
  end if;
  v_before := trunkline_internal.operated_state(p_kind => 'queue', p_object => p_queue);
  update trunkline_internal.queues as q
  set paused = false, refuse_enqueue = false, paused_at = null, paused_by = null, reason = null
  where q.queue = p_queue and q.paused;
  if not found then
    return false;
  end if;
  perform trunkline_internal.log_change(
    p_action => 'resume_queue', p_kind => 'queue', p_object => p_queue, p_before => v_before
  );
  perform trunkline_internal.wake_sleepers(p_queues => array[p_queue]);
  return true;
end;
$$;
comment on function trunkline.resume_queue(text) is 'Allows claims and new jobs in a queue again; returns whether it was paused.';
