-- Closes buckets at which nobody waits, in three steps, so that no job is enqueued behind a closed one; tells how many it changed.
-- Whoever enqueues relies on a row that is not closing. First a row of an empty bucket is marked as closing; then, once that
-- is committed and seen, it notes which transactions may still have overlooked the mark; when all of those have ended and
-- nobody waits, it goes. Where somebody does, it is open again.
-- (offset 0: one probe for each bucket. Joined, all limited jobs that wait would be read every few seconds.)
create or replace function trunkline_internal.close_empty_buckets()
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_changed integer := 0;
  v_rows integer;
  v_seal xid8;
begin
  update trunkline_internal.bucket_queues as g
  set closing = false, sealed_at_xid = null
  where g.closing
    and exists (
      select from trunkline_internal.waiting as w where w.bucket = g.bucket and w.queue = g.queue and w.state = 'ready' offset 0
    );
  get diagnostics v_rows = row_count;
  v_changed := v_changed + v_rows;
  delete from trunkline_internal.bucket_queues as g
  where g.closing
    and g.sealed_at_xid <= pg_snapshot_xmin(pg_current_snapshot())
    and not exists (
      select from trunkline_internal.waiting as w where w.bucket = g.bucket and w.queue = g.queue and w.state = 'ready' offset 0
    );
  get diagnostics v_rows = row_count;
  v_changed := v_changed + v_rows;
  if exists (select from trunkline_internal.bucket_queues as g where g.closing and g.sealed_at_xid is null) then
    -- Of the marks that are seen here. Who overlooked one of them had his id before it was committed.
    v_seal := trunkline_internal.fresh_xid(p_duty => 'sweep_buckets');
    update trunkline_internal.bucket_queues as g
    set sealed_at_xid = v_seal
    where g.closing and g.sealed_at_xid is null;
    get diagnostics v_rows = row_count;
    v_changed := v_changed + v_rows;
  end if;
  update trunkline_internal.bucket_queues as g
  set closing = true
  where not g.closing
    and not exists (
      select from trunkline_internal.waiting as w where w.bucket = g.bucket and w.queue = g.queue and w.state = 'ready' offset 0
    );
  get diagnostics v_rows = row_count;
  return v_changed + v_rows;
end;
$$;
comment on function trunkline_internal.close_empty_buckets() is 'Closes buckets at which nobody waits, in three steps, so that no job is enqueued behind a closed one; tells how many it changed.';
