-- Returns files to delete from the store, and keeps other workers from them for ten minutes.
create or replace function trunkline.take_removals(p_worker text, p_limit integer default 100)
returns setof text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_worker is null or p_worker = '' or length(p_worker) > 200 then
    perform trunkline_internal.refuse(p_name => 'worker_required', p_detail => '{}');
  end if;
  perform trunkline_internal.check_duty_limit(p_limit => p_limit, p_maximum => 1000);
  if trunkline.tenant_scope() is not null then
    return;
  end if;
  -- A path that a live artifact has is never handed out, however it came into the list.
  delete from trunkline_internal.file_removals as r
  where r.due_at <= trunkline.clock()
    and exists (select from trunkline_internal.artifacts as a where a.path = r.path and a.deleted_at is null);
  return query
  with taken as (
    select r.path
    from trunkline_internal.file_removals as r
    where r.due_at <= trunkline.clock()
    order by r.due_at
    limit p_limit
    for update of r skip locked
  )
  update trunkline_internal.file_removals as r
  set due_at = trunkline.clock() + interval '10 minutes', tries = r.tries + 1
  from taken as t
  where r.path = t.path
  returning r.path;
end;
$$;
comment on function trunkline.take_removals(text, integer) is 'Returns files to delete from the store, and keeps other workers from them for ten minutes.';
