-- Lists the jobs and grants that run under a limit when it gets its first concurrency: until then their slots were not kept.
-- p_bucket is the bucket of its name. For a name without keys the caller holds it, so that no claim is in progress that
-- lists no holders. For a name with keys, jobs claimed at this moment are missed. Adds adjustments, as shared charges are; a
-- holder that is listed already counts once.
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
      -- A job that holds a slot itself needs no second one.
      and not exists (
        select
        from trunkline_internal.running as r
        where r.job_id = g.job_id and g.bucket = any(r.bucket_ids)
      )
  ) as h
  group by h.bucket;
end;
$$;
comment on function trunkline_internal.list_holders(integer, bigint, timestamptz) is 'Lists the jobs and grants that run under a limit when it gets its first concurrency: until then their slots were not kept.';
