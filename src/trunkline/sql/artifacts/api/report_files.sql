-- Queues files of the store that no row knows for removal; returns how many. The next turn continues after p_cursor.
-- p_paths are files that are older than the age that take_sweep returned. Without a cursor the listing is complete.
create or replace function trunkline.report_files(p_worker text, p_paths text[], p_cursor text)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := trunkline.clock();
  v_orphans integer;
  v_unknown text[];
begin
  perform from trunkline_internal.store_sweep as s where s.worker = p_worker and s.leased_until >= v_now for update of s;
  if not found or trunkline.tenant_scope() is not null then
    return 0;
  end if;
  v_unknown := array(
    select p.path
    from unnest(p_paths) as p (path)
    -- An object store takes no longer names, and an index would refuse them: such a file of a folder stays.
    where octet_length(p.path) <= 1024
      and not exists (select from trunkline_internal.artifacts as a where a.path = p.path and a.deleted_at is null)
      and not exists (select from trunkline_internal.staged_artifacts as s where s.path = p.path)
      and not exists (select from trunkline_internal.file_removals as r where r.path = p.path)
  );
  perform trunkline_internal.queue_removals(p_paths => v_unknown, p_reason => 'orphan', p_due => v_now);
  v_orphans := cardinality(v_unknown);
  update trunkline_internal.store_sweep as s
  set
    file_cursor = left(p_cursor, 4096), orphans = s.orphans + v_orphans, leased_until = v_now + interval '5 minutes'
  where s.worker = p_worker;
  return v_orphans;
end;
$$;
comment on function trunkline.report_files(text, text[], text) is 'Queues files of the store that no row knows for removal; returns how many. The next turn continues after p_cursor.';
