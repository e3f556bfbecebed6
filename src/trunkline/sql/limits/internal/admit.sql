-- Asks the limits of a new job whether it may come: tells by how much it is put off, or refuses it.
-- Above a share of the minute, and where so many wait that the limit puts further ones off: backpressure_delay. A limit
-- that is not active puts nobody off: its jobs wait at the claim. Where a quota is spent, or too many wait: refused,
-- unless it was accepted before; then it waits at the claim, too.
create or replace function trunkline_internal.admit(
  p_buckets bigint[],
  p_limits integer[],
  p_priority integer,
  p_accepted boolean,
  p_now timestamptz
)
returns interval
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_delay interval;
  v_bucket record;
  v_limit trunkline_internal.limits;
begin
  for v_bucket in
    select p.bucket, p.allowed, p.delay, p.waiting, p.is_spent, p.is_low_spent
    from trunkline_internal.bucket_pressure(p_buckets => p_buckets, p_limits => p_limits, p_now => p_now) as p
  loop
    v_limit := v_bucket.allowed;
    if not p_accepted and (v_bucket.is_spent or (v_bucket.is_low_spent and p_priority < v_limit.quota_low_below)) then
      perform trunkline_internal.refuse_spent(
        p_bucket => v_bucket.bucket, p_limit => v_limit, p_is_low => not v_bucket.is_spent, p_now => p_now, p_index => null
      );
    end if;
    if v_bucket.waiting >= v_limit.depth_limit then
      if v_limit.depth_refuses and not p_accepted then
        perform trunkline_internal.refuse_full(p_bucket => v_bucket.bucket, p_limit => v_limit, p_waiting => v_bucket.waiting, p_jobs => 1);
      elsif not v_limit.depth_refuses and v_limit.status = 'active' then
        v_delay := greatest(v_delay, coalesce(v_limit.backpressure_delay, interval '5 seconds'));
      end if;
    end if;
    v_delay := greatest(v_delay, v_bucket.delay);
  end loop;
  return v_delay;
end;
$$;
comment on function trunkline_internal.admit(bigint[], integer[], integer, boolean, timestamptz) is 'Asks the limits of a new job whether it may come: tells by how much it is put off, or refuses it.';
