-- Refuses new jobs for a bucket whose quota, or its share for low priorities, is spent; the detail has the time when it is free again.
create or replace function trunkline_internal.refuse_spent(
  p_bucket bigint, p_limit trunkline_internal.limits, p_is_low boolean, p_now timestamptz, p_index bigint, p_name text
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_given bigint := floor(
    p_limit.quota * case when p_is_low then least(p_limit.quota_low_share, p_limit.quota_buffer) else p_limit.quota_buffer end
  )::bigint;
  v_room record;
begin
  select
    case when p_is_low then r.low_units else r.units end as units,
    trunkline_internal.quota_free_at(
      p_bucket => p_bucket, p_limit => p_limit, p_state => r.state, p_amount => 1, p_low => p_is_low, p_now => p_now
    ) as free_at
  into v_room
  from trunkline_internal.bucket_room(p_buckets => array[p_bucket], p_limits => array[p_limit.limit_id], p_now => p_now) as r;
  perform trunkline_internal.refuse(
    p_name => 'quota_spent',
    p_detail => jsonb_strip_nulls(jsonb_build_object(
      'index', p_index,
      'limit', coalesce(
        p_name, (select n.name from trunkline_internal.bucket_names as n where n.bucket = p_bucket limit 1), p_limit.name
      ),
      'unit', p_limit.quota_unit, 'quota', p_limit.quota, 'given_out_up_to', v_given, 'spent', v_given - v_room.units,
      'only_priorities_from', case when p_is_low then p_limit.quota_low_below end,
      'free_at', nullif(v_room.free_at, 'infinity'::timestamptz)
    ))
  );
end;
$$;
comment on function trunkline_internal.refuse_spent(bigint, trunkline_internal.limits, boolean, timestamptz, bigint, text) is 'Refuses new jobs for a bucket whose quota, or its share for low priorities, is spent; the detail has the time when it is free again.';
