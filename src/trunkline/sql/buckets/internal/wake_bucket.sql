-- Wakes workers that sleep on queues in which jobs may wait for a bucket.
create or replace function trunkline_internal.wake_bucket(p_bucket bigint)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform trunkline_internal.wake_buckets(p_buckets => array[p_bucket], p_queues => array[]::text[], p_slots => false, p_elsewhere => true);
end;
$$;
comment on function trunkline_internal.wake_bucket(bigint) is 'Wakes workers that sleep on queues in which jobs may wait for a bucket.';
