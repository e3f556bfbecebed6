-- Lets a queue age, or stops it: one of sixteen claims then serves its priorities from the lowest, so that none starves.
-- From zero up and below zero apart: what is bulk stays behind what is not.
create or replace function trunkline.age_queue(p_queue text, p_ageing boolean default true)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform trunkline_internal.require_all_tenants(p_detail => jsonb_build_object('queue', p_queue));
  perform trunkline_internal.check_queue_name(p_queue => p_queue);
  insert into trunkline_internal.queues as q (queue, ageing)
  values (p_queue, coalesce(p_ageing, true))
  on conflict (queue) do update set ageing = excluded.ageing;
end;
$$;
comment on function trunkline.age_queue(text, boolean) is 'Lets a queue age, or stops it: one of sixteen claims then serves its priorities from the lowest, so that none starves.';
