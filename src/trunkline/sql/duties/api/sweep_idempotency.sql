-- Duty: removes expired idempotency keys, at most p_limit a run; tells how many.
create or replace function trunkline.sweep_idempotency(p_limit integer default 10000)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
  v_done integer := 0;
begin
  perform trunkline_internal.require_read_committed();
  if p_limit is null or p_limit not between 1 and 100000 then
    perform trunkline_internal.refuse(
      p_name => 'limit_out_of_range',
      p_detail => jsonb_build_object('limit', p_limit, 'minimum', 1, 'maximum', 100000)
    );
  end if;
  if not trunkline_internal.duty_begin(p_duty => 'sweep_idempotency') then
    return 0;
  end if;
  begin
    delete from trunkline_internal.idempotency_keys as k
    where k.ctid = any(array(
      select e.ctid
      from trunkline_internal.idempotency_keys as e
      where e.expires_at <= trunkline.clock()
      order by e.expires_at
      limit p_limit
      for update of e skip locked
    ));
    get diagnostics v_done = row_count;
    perform trunkline_internal.duty_end(p_duty => 'sweep_idempotency', p_rows => v_done);
  exception
    when others then
      v_done := 0;
      perform trunkline_internal.duty_failed(p_duty => 'sweep_idempotency', p_sqlstate => sqlstate, p_message => sqlerrm);
  end;
  return v_done;
end;
$$;
comment on function trunkline.sweep_idempotency(integer) is 'Duty: removes expired idempotency keys, at most p_limit a run; tells how many.';
