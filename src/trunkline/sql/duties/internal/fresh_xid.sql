-- Returns a transaction id above every id that was assigned before the call.
-- The caller's own may be older than others that run, and a snapshot's xmax is one past the last that *ended*: neither
-- will do. A subtransaction draws a new id when it first writes; it writes the row of the duty, which the caller holds.
create or replace function trunkline_internal.fresh_xid(p_duty text)
returns xid8
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_epoch constant bigint := 4294967296;
  v_fresh bigint;
  v_own bigint := pg_current_xact_id()::text::bigint;
begin
  begin
    update trunkline_internal.duties as d
    set started_at = d.started_at
    where d.duty = p_duty
    returning d.xmin::text::bigint into strict v_fresh;
  exception
    when no_data_found then
      raise exception using errcode = 'assert_failure', message = format('duty %s is not in the register', p_duty);
  end;
  -- Without its epoch: that of the caller's id, or the next one if the numbers wrapped around in between.
  v_fresh := v_own - v_own % c_epoch + v_fresh;
  return (v_fresh + case when v_fresh < v_own then c_epoch else 0 end)::text::xid8;
end;
$$;
comment on function trunkline_internal.fresh_xid(text) is 'Returns a transaction id above every id that was assigned before the call.';
