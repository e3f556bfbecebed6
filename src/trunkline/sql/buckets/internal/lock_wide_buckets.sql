-- Locks the buckets of candidates that were found without a lock, and returns whether there is room for all charges.
create or replace function trunkline_internal.lock_wide_buckets(p_charges trunkline_internal.bucket_charge[], p_now timestamptz)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fits boolean;
begin
  if not trunkline_internal.wait_for_buckets(p_charges => p_charges, p_shared => false) then
    return false;
  end if;
  -- A separate statement: rows read before the lock may be old.
  select count(*) = cardinality(p_charges)
  into v_fits
  from unnest(p_charges) as c
  join trunkline_internal.bucket_room(
    p_buckets => array(select c.bucket from unnest(p_charges) as c),
    p_limits => array(select c.limit_id from unnest(p_charges) as c),
    p_now => p_now,
    p_wanted => (select max(cardinality(c.holders)) from unnest(p_charges) as c)
  ) as r on r.bucket = c.bucket
  where (r.allowed).status = 'active'
    and r.paused_until is null
    and coalesce(r.slots >= cardinality(c.holders), true)
    and coalesce(r.requests >= greatest(c.requests, 1), true)
    and coalesce(r.tokens >= greatest(c.tokens, 1), true)
    and coalesce(
      r.units >= trunkline_internal.amount_of(
        p_unit => (r.allowed).quota_unit, p_requests => c.requests, p_tokens => c.tokens, p_units => c.units
      ),
      true
    );
  return v_fits;
end;
$$;
comment on function trunkline_internal.lock_wide_buckets(trunkline_internal.bucket_charge[], timestamptz) is 'Locks the buckets of candidates that were found without a lock, and returns whether there is room for all charges.';
