-- Removes expired idempotency keys, at most p_limit; returns how many. The work of trunkline.sweep_idempotency.
create or replace function trunkline_internal.duty_sweep_idempotency(p_limit integer default 10000)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
  v_removed integer;
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
  get diagnostics v_removed = row_count;
  return v_removed;
end;
$$;
comment on function trunkline_internal.duty_sweep_idempotency(integer) is 'Removes expired idempotency keys, at most p_limit; returns how many. The work of trunkline.sweep_idempotency.';
