-- Records which files a worker has deleted from the store; an error leaves the file for a later try. Returns how many are gone.
create or replace function trunkline.report_removals(p_worker text, p_paths text[], p_errors text[] default null)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_gone integer;
begin
  if p_worker is null or p_worker = '' or length(p_worker) > 200 then
    perform trunkline_internal.refuse(p_name => 'worker_required', p_detail => '{}');
  end if;
  if trunkline.tenant_scope() is not null then
    return 0;
  end if;
  if p_errors is not null and cardinality(p_errors) <> cardinality(p_paths) then
    perform trunkline_internal.refuse(
      p_name => 'array_length_mismatch',
      p_detail => jsonb_build_object('paths', cardinality(p_paths), 'errors', cardinality(p_errors))
    );
  end if;
  delete from trunkline_internal.file_removals as r
  using unnest(p_paths, coalesce(p_errors, array_fill(null::text, array[cardinality(p_paths)]))) as p (path, error)
  where r.path = p.path and p.error is null;
  get diagnostics v_gone = row_count;
  update trunkline_internal.file_removals as r
  -- Back-off: a minute, doubled up to a day.
  set
    last_error = left(p.error, 500),
    due_at = trunkline.clock() + least(interval '1 minute' * power(2, least(r.tries, 12)), interval '1 day')
  from unnest(p_paths, p_errors) as p (path, error)
  where r.path = p.path and p.error is not null;
  return v_gone;
end;
$$;
comment on function trunkline.report_removals(text, text[], text[]) is 'Records which files a worker has deleted from the store; an error leaves the file for a later try. Returns how many are gone.';
