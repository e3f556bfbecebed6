-- Duty: queues files of ended attempts and of expired artifacts for removal, and drops old tombstones; returns how many.
create or replace function trunkline.sweep_artifacts(p_limit integer default 1000)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform trunkline_internal.check_duty_limit(p_limit => p_limit, p_maximum => 100000);
  return (select coalesce(r.done, 0) from trunkline_internal.guard_duty(p_duty => 'sweep_artifacts', p_limit => p_limit) as r);
end;
$$;
comment on function trunkline.sweep_artifacts(integer) is 'Duty: queues files of ended attempts and of expired artifacts for removal, and drops old tombstones; returns how many.';
