-- Refuses new jobs for a bucket whose queue has reached its depth limit.
create or replace function trunkline_internal.refuse_full(
  p_bucket bigint, p_limit trunkline_internal.limits, p_waiting bigint, p_jobs bigint, p_name text
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform trunkline_internal.refuse(
    p_name => 'limit_queue_full',
    p_detail => jsonb_build_object(
      'limit', coalesce(
        p_name, (select n.name from trunkline_internal.bucket_names as n where n.bucket = p_bucket limit 1), p_limit.name
      ),
      'waiting', p_waiting, 'asked', p_jobs, 'depth_limit', p_limit.depth_limit
    )
  );
end;
$$;
comment on function trunkline_internal.refuse_full(bigint, trunkline_internal.limits, bigint, bigint, text) is 'Refuses new jobs for a bucket whose queue has reached its depth limit.';
