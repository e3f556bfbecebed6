-- Duty: closes buckets without waiting jobs, sets aside jobs that no longer fit their limits, frees those that fit again, and drops charges that no window counts any more; returns how many rows it changed.
-- A run sets aside about 5,000 jobs and frees 5,000 at most. Of everything else it changes at most p_limit rows.
create or replace function trunkline.sweep_buckets(p_limit integer default 1000)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
as $$
begin
  perform trunkline_internal.check_duty_limit(p_limit => p_limit, p_maximum => 100000);
  return (select coalesce(r.done, 0) from trunkline_internal.guard_duty(p_duty => 'sweep_buckets', p_limit => p_limit) as r);
end;
$$;
comment on function trunkline.sweep_buckets(integer) is 'Duty: closes buckets without waiting jobs, sets aside jobs that no longer fit their limits, frees those that fit again, and drops charges that no window counts any more; returns how many rows it changed.';
