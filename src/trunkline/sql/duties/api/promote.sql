-- Duty: makes due jobs ready, at most p_limit a run; tells how many. Claims do the same in passing, so latency does not depend on it.
create or replace function trunkline.promote(p_limit integer default 1000)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
  v_done integer := 0;
  v_queues text[];
begin
  perform trunkline_internal.require_read_committed();
  if p_limit is null or p_limit not between 1 and 100000 then
    perform trunkline_internal.refuse(
      p_name => 'limit_out_of_range',
      p_detail => jsonb_build_object('limit', p_limit, 'minimum', 1, 'maximum', 100000)
    );
  end if;
  if not trunkline_internal.duty_begin(p_duty => 'promote') then
    return 0;
  end if;
  begin
    select p.promoted, p.queues
    into v_done, v_queues
    from trunkline_internal.promote_due(p_now => trunkline.clock(), p_from => '-infinity', p_limit => p_limit) as p;
    perform trunkline_internal.wake_sleepers(p_queues => v_queues);
    perform trunkline_internal.duty_end(p_duty => 'promote', p_rows => v_done);
  exception
    when others then
      v_done := 0;
      perform trunkline_internal.duty_failed(p_duty => 'promote', p_sqlstate => sqlstate, p_message => sqlerrm);
  end;
  return v_done;
end;
$$;
comment on function trunkline.promote(integer) is 'Duty: makes due jobs ready, at most p_limit a run; tells how many. Claims do the same in passing, so latency does not depend on it.';
