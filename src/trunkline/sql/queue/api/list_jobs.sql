-- Lists jobs newest first, by state, task, queue and tenant; p_before is the last id of the page before.
-- Null means any. If many jobs match the filter, it reads little more than the page. If few match, it reads until the page
-- is full or there are no more jobs, which takes seconds per million jobs: then use find_jobs, which is bounded.
create or replace function trunkline.list_jobs(
  p_states text[] default null,
  p_task text default null,
  p_queue text default null,
  p_tenant text default null,
  p_limit integer default 100,
  p_before uuid default null
)
returns setof trunkline.listed_job
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select j.*
  from trunkline_internal.look_for_jobs(
    p_states => trunkline_internal.check_listing(p_states => p_states, p_limit => p_limit, p_most => 1000),
    p_task => p_task, p_queue => p_queue, p_tenant => p_tenant, p_limit => p_limit,
    -- The greatest possible id: a comparison with it uses the index, one with null does not.
    p_before => coalesce(p_before, 'ffffffff-ffff-ffff-ffff-ffffffffffff'),
    p_look => null, p_scope => trunkline.tenant_scope()
  ) as j;
end;
$$;
comment on function trunkline.list_jobs(text[], text, text, text, integer, uuid) is 'Lists jobs newest first, by state, task, queue and tenant; p_before is the last id of the page before.';
