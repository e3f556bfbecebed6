-- Duty: removes expired idempotency keys, at most p_limit in one run; returns how many.
create or replace function trunkline.sweep_idempotency(p_limit integer default 10000)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
begin
  perform trunkline_internal.check_duty_limit(p_limit => p_limit, p_maximum => 100000);
  return (select coalesce(r.done, 0) from trunkline_internal.guard_duty(p_duty => 'sweep_idempotency', p_limit => p_limit) as r);
end;
$$;
comment on function trunkline.sweep_idempotency(integer) is 'Duty: removes expired idempotency keys, at most p_limit in one run; returns how many.';
