-- Closes buckets without waiting jobs, in three steps, so that no job is enqueued behind a closed one; returns how many rows it changed.
-- An enqueue relies on a row that is not closing. First a row of an empty bucket is marked as closing. Once the mark is
-- committed and visible, the row records which transactions may have missed it. When all of those have ended and no job
-- waits, the row is deleted. If a job waits, the bucket is open again.
-- (offset 0: one index probe for each bucket. Joined, all limited jobs that wait would be read every few seconds.)
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
    -- For the marks visible here. A transaction that missed one had its id before the mark was committed.
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
comment on function trunkline_internal.close_empty_buckets() is 'Closes buckets without waiting jobs, in three steps, so that no job is enqueued behind a closed one; returns how many rows it changed.';
