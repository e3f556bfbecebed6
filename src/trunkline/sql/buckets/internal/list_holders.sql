-- Lists who runs under a limit that counts from now on who does: nobody had to remember it before.
-- p_bucket is that of its name. Of a name without keys the caller holds it, so that no claim is under way that counts
-- nobody; of one with keys those of this very moment are missed. A line beside the state, as shared charges are; who is
-- listed already counts once.
create or replace function trunkline_internal.list_holders(p_limit integer, p_bucket bigint, p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into trunkline_internal.bucket_adjustments (bucket, at, requests, tokens, units, holders)
  select h.bucket, floor(extract(epoch from p_now))::bigint, 0, 0, 0, array_agg(h.holder)
  from (
    select i.bucket, r.job_id as holder
    from trunkline_internal.running as r
    cross join lateral unnest(r.limit_ids, r.bucket_ids) as i (limit_id, bucket)
    where i.limit_id = p_limit or i.bucket = p_bucket
    union all
    select g.bucket, g.grant_id
    from trunkline_internal.grants as g
    where (g.limit_id = p_limit or g.bucket = p_bucket)
      and g.settled_at is null
      -- A job that has the slot itself needs no other.
      and not exists (
        select
        from trunkline_internal.running as r
        where r.job_id = g.job_id and g.bucket = any(r.bucket_ids)
      )
  ) as h
  group by h.bucket;
end;
$$;
comment on function trunkline_internal.list_holders(integer, bigint, timestamptz) is 'Lists who runs under a limit that counts from now on who does: nobody had to remember it before.';
