-- Limits the number of ready jobs in a queue; enqueue refuses further ones. Null removes the limit.
create or replace function trunkline.limit_queue(p_queue text, p_max_depth integer)
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
  if p_max_depth < 1 then
    perform trunkline_internal.refuse(
      p_name => 'limit_out_of_range',
      p_detail => jsonb_build_object('limit', p_max_depth, 'minimum', 1, 'maximum', 2147483647)
    );
  end if;
  v_before := trunkline_internal.operated_state(p_kind => 'queue', p_object => p_queue);
  insert into trunkline_internal.queues as q (queue, max_depth)
  values (p_queue, p_max_depth)
  on conflict (queue) do update set max_depth = excluded.max_depth;
  perform trunkline_internal.log_change(
    p_action => 'limit_queue', p_kind => 'queue', p_object => p_queue, p_before => v_before
  );
end;
$$;
comment on function trunkline.limit_queue(text, integer) is 'Limits the number of ready jobs in a queue; enqueue refuses further ones. Null removes the limit.';
