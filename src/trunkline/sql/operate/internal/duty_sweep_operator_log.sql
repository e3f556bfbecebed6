-- Removes lines of the operator log past their retention, oldest first, at most p_limit; returns how many.
create or replace function trunkline_internal.duty_sweep_operator_log(p_limit integer default 10000)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
declare
  v_removed integer;
  v_retention interval := trunkline_internal.setting(p_name => 'operator_log_retention')::interval;
begin
  delete from trunkline_internal.operator_log as l
  where l.log_id = any(array(
    select o.log_id
    from trunkline_internal.operator_log as o
    where o.at <= trunkline.clock() - v_retention
    order by o.at
    limit p_limit
    for update of o skip locked
  ));
  get diagnostics v_removed = row_count;
  return v_removed;
end;
$$;
comment on function trunkline_internal.duty_sweep_operator_log(integer) is 'Removes lines of the operator log past their retention, oldest first, at most p_limit; returns how many.';
