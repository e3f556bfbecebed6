-- Ends jobs that have not started by their expires_at, at most p_limit; returns how many. The work of the duty expire.
-- Claims do the same, but no claim meets a job behind a spent limit or a job that is set aside.
create or replace function trunkline_internal.duty_expire(p_limit integer default 10000)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return trunkline_internal.expire_due(p_now => trunkline.clock(), p_limit => p_limit);
end;
$$;
comment on function trunkline_internal.duty_expire(integer) is 'Ends jobs that have not started by their expires_at, at most p_limit; returns how many. The work of the duty expire.';
