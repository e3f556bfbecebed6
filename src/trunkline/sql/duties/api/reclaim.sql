-- Duty: takes back jobs whose lease or hard limit is over or whose worker is gone, at most p_limit in one run; returns them.
-- While another session runs it, it returns nothing at once.
create or replace function trunkline.reclaim(p_limit integer default 500)
returns setof trunkline.reclaimed_job
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_lost jsonb;
  v_scope text := trunkline.tenant_scope();
begin
  perform trunkline_internal.check_duty_limit(p_limit => p_limit, p_maximum => 10000);
  select r.result
  into v_lost
  from trunkline_internal.guard_duty(p_duty => 'reclaim', p_limit => p_limit, p_keep_rows => true) as r;
  -- The run takes back the jobs of all tenants. A caller that acts for one tenant receives only its own.
  return query
  select l.*
  from jsonb_populate_recordset(null::trunkline.reclaimed_job, v_lost) as l
  where v_scope is null
    or trunkline_internal.visible_live_state(p_job => l.job_id, p_scope => v_scope) is not null
    or trunkline_internal.visible_end(p_job => l.job_id, p_scope => v_scope) is not null;
end;
$$;
comment on function trunkline.reclaim(integer) is 'Duty: takes back jobs whose lease or hard limit is over or whose worker is gone, at most p_limit in one run; returns them.';
