-- Returns a page of jobs, newest first, by state, task, queue and tenant, and where the next page starts.
-- Unlike list_jobs it reads at most the newest 20,000 jobs of each table before p_before, so its time does not depend on the
-- number of jobs. A page may be short or empty although older jobs match: next is null only after the last page.
-- Null means any. Read-only, in one snapshot.
create or replace function trunkline.find_jobs(
  p_states text[] default null,
  p_task text default null,
  p_queue text default null,
  p_tenant text default null,
  p_limit integer default 100,
  p_before uuid default null
)
returns trunkline.job_page
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  c_look constant integer := 20000;
  c_waiting constant text[] := array['ready', 'scheduled', 'blocked'];
  c_finished constant text[] := array['completed', 'cancelled'];
  v_before uuid := coalesce(p_before, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
  v_page trunkline.job_page;
  v_states text[] := trunkline_internal.check_listing(p_states => p_states, p_limit => p_limit, p_most => 10000);
begin
  v_page.jobs := array(
    select j
    from trunkline_internal.look_for_jobs(
      p_states => v_states, p_task => p_task, p_queue => p_queue, p_tenant => p_tenant, p_limit => p_limit,
      p_before => v_before, p_look => c_look, p_scope => trunkline.tenant_scope()
    ) as j
  );
  if cardinality(v_page.jobs) = p_limit then
    v_page.next := v_page.jobs[p_limit].job_id;
    return v_page;
  end if;
  -- The newest of the last rows read from each table: older jobs of that table were not read.
  select t.job_id
  into v_page.next
  from (
    (
      select w.job_id from trunkline_internal.waiting as w
      where v_states && c_waiting and w.job_id < v_before order by w.job_id desc offset c_look - 1 limit 1
    )
    union all
    (
      select r.job_id from trunkline_internal.running as r
      where 'running' = any(v_states) and r.job_id < v_before order by r.job_id desc offset c_look - 1 limit 1
    )
    union all
    (
      select d.job_id from trunkline_internal.dead as d
      where 'dead' = any(v_states) and d.job_id < v_before order by d.job_id desc offset c_look - 1 limit 1
    )
    union all
    (
      select f.job_id from trunkline_internal.finished as f
      where v_states && c_finished and f.job_id < v_before order by f.job_id desc offset c_look - 1 limit 1
    )
  ) as t
  order by t.job_id desc
  limit 1;
  if v_page.next is not null then
    v_page.jobs := array(select j from unnest(v_page.jobs) as j where j.job_id >= v_page.next order by j.job_id desc);
  end if;
  return v_page;
end;
$$;
comment on function trunkline.find_jobs(text[], text, text, text, integer, uuid) is 'Returns a page of jobs, newest first, by state, task, queue and tenant, and where the next page starts.';
