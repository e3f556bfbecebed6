-- Returns how many jobs could start under each bucket now, and the amounts that are left; null means no bound.
-- Buckets of paused limits, and those that a provider or a breaker has paused, have no room.
create or replace function trunkline_internal.startable_room(p_buckets bigint[], p_limits integer[], p_now timestamptz)
returns table (bucket bigint, jobs bigint, requests bigint, tokens bigint, units bigint, quota_unit text)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select
    r.bucket,
    case
      when (r.allowed).status <> 'active' or r.paused_until is not null or least(r.requests, r.tokens, r.units, r.slots) <= 0 then 0
      else coalesce(least(r.requests, r.slots), 10000)
    end,
    r.requests, r.tokens, r.units, (r.allowed).quota_unit
  from trunkline_internal.bucket_room(
    p_buckets => p_buckets,
    p_limits => array(
      select trunkline_internal.limit_of(p_bucket => g.bucket, p_limit => g.limit_id)
      from unnest(p_buckets, p_limits) with ordinality as g (bucket, limit_id, place)
      order by g.place
    ),
    p_now => p_now
  ) as r;
end;
$$;
comment on function trunkline_internal.startable_room(bigint[], integer[], timestamptz) is 'Returns how many jobs could start under each bucket now, and the amounts that are left; null means no bound.';
