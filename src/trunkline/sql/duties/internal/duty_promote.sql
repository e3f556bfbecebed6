-- Makes due jobs ready, at most p_limit, and wakes workers for them; returns how many. The work of trunkline.promote.
create or replace function trunkline_internal.duty_promote(p_limit integer default 1000)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
  v_promoted integer;
  v_queues text[];
begin
  select p.promoted, p.queues
  into v_promoted, v_queues
  from trunkline_internal.promote_due(p_now => trunkline.clock(), p_from => '-infinity', p_limit => p_limit) as p;
  perform trunkline_internal.wake_sleepers(p_queues => v_queues);
  return v_promoted;
end;
$$;
comment on function trunkline_internal.duty_promote(integer) is 'Makes due jobs ready, at most p_limit, and wakes workers for them; returns how many. The work of trunkline.promote.';
