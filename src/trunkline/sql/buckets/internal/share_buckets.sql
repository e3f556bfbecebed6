-- Lets a claim charge buckets beside others without holding them, where so much is free that none can miss it; tells whether it may, null: it must hold them.
-- Nobody sees what others have charged and not committed. So at most eight do it at once, each for at most a sixteenth
-- of a limit, while half of it is seen to be free: then even all of them together take no more than that half. Whoever
-- holds the bucket waits until they have ended, and they wait for it.
create or replace function trunkline_internal.share_buckets(p_charges trunkline_internal.bucket_charge[], p_now timestamptz)
returns boolean
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
    return null;
  end if;
  if not trunkline_internal.wait_for_buckets(p_charges => p_charges, p_shared => true) then
    return false;
  end if;
  -- A statement of its own: what was read before may be old.
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
  return v_fits;
end;
$$;
comment on function trunkline_internal.share_buckets(trunkline_internal.bucket_charge[], timestamptz) is 'Lets a claim charge buckets beside others without holding them, where so much is free that none can miss it; tells whether it may, null: it must hold them.';
