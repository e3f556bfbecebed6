-- Makes claims scan the buckets of these jobs, if they are ready and limited.
-- Called after every change that makes a limited job ready. Adds a row if none is open, and waits for no lock: two at once
-- add two. Above READ COMMITTED the rows it sees may be gone, so it always adds one.
create or replace function trunkline_internal.open_buckets(p_jobs uuid[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_sees_all boolean := current_setting('transaction_isolation') = 'read committed';
begin
  insert into trunkline_internal.bucket_queues (bucket, limit_id, queue)
  select distinct
    w.bucket,
    trunkline_internal.limit_of(p_bucket => w.bucket, p_limit => w.limit_ids[array_position(w.bucket_ids, w.bucket)]),
    w.queue
  from (
    -- A separate subquery, so that jobs are found by id. If the table was empty when it was analysed, the index of
    -- limited jobs looks cheaper and would be read from end to end.
    select w.bucket, w.limit_ids, w.bucket_ids, w.queue, w.state from trunkline_internal.waiting as w where w.job_id = any(p_jobs) offset 0
  ) as w
  where w.state = 'ready'
    and w.bucket is not null
    and not (v_sees_all and exists (
      select
      from trunkline_internal.bucket_queues as g
      where g.bucket = w.bucket and g.queue = w.queue and not g.closing
    ));
end;
$$;
comment on function trunkline_internal.open_buckets(uuid[]) is 'Makes claims scan the buckets of these jobs, if they are ready and limited.';
