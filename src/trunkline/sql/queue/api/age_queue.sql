-- Turns ageing of a queue on or off: with it, one claim in sixteen serves the lowest priority first, so that none starves.
-- Priorities below zero are for bulk jobs and age separately: such a claim still serves priorities from zero up first.
create or replace function trunkline.age_queue(p_queue text, p_ageing boolean default true)
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
  insert into trunkline_internal.queues as q (queue, ageing)
  values (p_queue, coalesce(p_ageing, true))
  on conflict (queue) do update set ageing = excluded.ageing;
  perform trunkline_internal.log_change(
    p_action => 'age_queue', p_kind => 'queue', p_object => p_queue, p_before => v_before
  );
end;
$$;
comment on function trunkline.age_queue(text, boolean) is 'Turns ageing of a queue on or off: with it, one claim in sixteen serves the lowest priority first, so that none starves.';
