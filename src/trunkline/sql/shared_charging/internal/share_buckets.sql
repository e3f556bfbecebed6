-- Lets a claim charge wide buckets alongside other claims, under a shared lock, if enough of them is free for all.
-- A claim cannot see what others have charged but not committed. So at most eight claims share a bucket, each charges at
-- most a sixteenth of the limit, and half of the limit must be seen free: all eight together use no more than that half.
-- An exclusive lock waits for the shared ones, and they wait for it.
-- Returns shared; too_narrow if the buckets must be locked exclusively; no_room if another transaction holds one of them
-- for long, or less than half of one is free.
create or replace function trunkline_internal.share_buckets(p_charges trunkline_internal.bucket_charge[], p_now timestamptz)
returns text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fits boolean;
begin
  if exists (
    select
    from unnest(p_charges) as c
    join trunkline_internal.limits as l on l.limit_id = c.limit_id
    where num_nonnulls(l.quota, l.breaker_failures, l.share_group) > 0
      or 16 * c.starts > l.concurrency
      or 16 * c.requests > least(l.requests_per_minute, l.requests_per_hour)
      or 16 * c.tokens > least(l.tokens_per_minute, l.tokens_per_hour)
  ) then
    return 'too_narrow';
  end if;
  if not trunkline_internal.wait_for_buckets(p_charges => p_charges, p_shared => true) then
    return 'no_room';
  end if;
  -- A separate statement: rows read before the lock may be old.
  select count(*) = cardinality(p_charges)
  into v_fits
  from unnest(p_charges) as c
  join trunkline_internal.bucket_room(
    p_buckets => array(select c.bucket from unnest(p_charges) as c),
    p_limits => array(select c.limit_id from unnest(p_charges) as c),
    p_now => p_now,
    p_wanted => 0
  ) as r on r.bucket = c.bucket
  where (r.allowed).status = 'active'
    and r.paused_until is null
    and num_nonnulls((r.allowed).quota, (r.allowed).breaker_failures, (r.allowed).share_group) = 0
    and coalesce(16 * c.starts <= (r.allowed).concurrency and 2 * r.slots >= (r.allowed).concurrency, true)
    and coalesce(
      16 * c.requests <= least((r.allowed).requests_per_minute, (r.allowed).requests_per_hour)
      and 2 * r.requests >= least((r.allowed).requests_per_minute, (r.allowed).requests_per_hour),
      true
    )
    and coalesce(
      16 * c.tokens <= least((r.allowed).tokens_per_minute, (r.allowed).tokens_per_hour)
      and 2 * r.tokens >= least((r.allowed).tokens_per_minute, (r.allowed).tokens_per_hour),
      true
    );
  return case when v_fits then 'shared' else 'no_room' end;
end;
$$;
comment on function trunkline_internal.share_buckets(trunkline_internal.bucket_charge[], timestamptz) is 'Lets a claim charge wide buckets alongside other claims, under a shared lock, if enough of them is free for all.';
