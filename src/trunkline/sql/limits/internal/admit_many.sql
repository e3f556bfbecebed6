-- Asks buckets whether so many new jobs may come: tells by how much those of each are put off, or refuses all of them.
-- As admit, for a batch. is_partial where a bucket has room for some of them and puts the others off; below low_below
-- priorities are refused: the caller asks for each job alone then. p_firsts says which job of the batch to blame.
create or replace function trunkline_internal.admit_many(
  p_buckets bigint[],
  p_limits integer[],
  p_jobs bigint[],
  p_firsts bigint[],
  p_now timestamptz
)
returns table (bucket bigint, delay interval, low_below integer, is_partial boolean)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_bucket record;
  v_limit trunkline_internal.limits;
  v_place integer;
begin
  if p_buckets is null then
    return;
  end if;
  for v_bucket in
    select p.bucket, p.allowed, p.delay, p.waiting, p.is_spent, p.is_low_spent
    from trunkline_internal.bucket_pressure(p_buckets => p_buckets, p_limits => p_limits, p_now => p_now) as p
  loop
    v_limit := v_bucket.allowed;
    v_place := array_position(p_buckets, v_bucket.bucket);
    if v_bucket.is_spent then
      perform trunkline_internal.refuse_spent(
        p_bucket => v_bucket.bucket, p_limit => v_limit, p_is_low => false, p_now => p_now, p_index => p_firsts[v_place]
      );
    end if;
    bucket := v_bucket.bucket;
    delay := v_bucket.delay;
    low_below := case when v_bucket.is_low_spent then v_limit.quota_low_below::integer end;
    is_partial := false;
    if v_bucket.waiting + p_jobs[v_place] > v_limit.depth_limit then
      if v_limit.depth_refuses then
        perform trunkline_internal.refuse_full(
          p_bucket => v_bucket.bucket, p_limit => v_limit, p_waiting => v_bucket.waiting, p_jobs => p_jobs[v_place]
        );
      elsif v_limit.status = 'active' then
        delay := greatest(v_bucket.delay, coalesce(v_limit.backpressure_delay, interval '5 seconds'));
        is_partial := v_bucket.waiting < v_limit.depth_limit;
      end if;
    end if;
    return next;
  end loop;
end;
$$;
comment on function trunkline_internal.admit_many(bigint[], integer[], bigint[], bigint[], timestamptz) is 'Asks buckets whether so many new jobs may come: tells by how much those of each are put off, or refuses all of them.';
