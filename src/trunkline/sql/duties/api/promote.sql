-- Duty: makes due jobs ready, at most p_limit in one run; returns how many. Claims also promote, so latency does not depend on it.
create or replace function trunkline.promote(p_limit integer default 1000)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
begin
  perform trunkline_internal.check_duty_limit(p_limit => p_limit, p_maximum => 100000);
  return (select coalesce(r.done, 0) from trunkline_internal.guard_duty(p_duty => 'promote', p_limit => p_limit) as r);
end;
$$;
comment on function trunkline.promote(integer) is 'Duty: makes due jobs ready, at most p_limit in one run; returns how many. Claims also promote, so latency does not depend on it.';
