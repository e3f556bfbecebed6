-- Assigns buckets to the limit of exactly their name, where there is one; returns how many rows it changed.
-- Called when such a limit is created, and by the duty sweep_buckets: a job that was enqueued under a name with keys, but
-- not committed at that moment, has left rows that refer to the limit with keys.
create or replace function trunkline_internal.assign_named_buckets()
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_changed integer;
  v_rows integer;
begin
  update trunkline_internal.bucket_names as n
  set limit_id = l.limit_id
  from trunkline_internal.limits as l
  where l.bucket = n.bucket and l.limit_id <> n.limit_id;
  get diagnostics v_changed = row_count;
  update trunkline_internal.bucket_queues as g
  set limit_id = l.limit_id
  from trunkline_internal.limits as l
  where l.bucket = g.bucket and l.limit_id <> g.limit_id;
  get diagnostics v_rows = row_count;
  return v_changed + v_rows;
end;
$$;
comment on function trunkline_internal.assign_named_buckets() is 'Assigns buckets to the limit of exactly their name, where there is one; returns how many rows it changed.';
