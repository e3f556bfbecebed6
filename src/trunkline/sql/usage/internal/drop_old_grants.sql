-- Removes grants a day after they expire, at most p_limit, and records unsettled ones as estimated; returns how many.
create or replace function trunkline_internal.drop_old_grants(p_limit integer, p_now timestamptz)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_removed integer;
begin
  with removed as (
    delete from trunkline_internal.grants as g
    where g.ctid = any(array(
      select o.ctid from trunkline_internal.grants as o where o.expires_at < p_now - interval '1 day' limit p_limit
    ))
    returning g.*
  ),
  booked as (
    insert into trunkline_internal.usage (
      at, grant_id, job_id, attempt, bucket, limit_id, task, tenant, requests, tokens, units, cost
    )
    select
      r.granted_at, r.grant_id, r.job_id, r.attempt, c.bucket, c.limit_id, r.task, r.tenant, r.requests, r.tokens, r.units, 0
    from removed as r
    cross join lateral (
      select r.bucket, r.limit_id
      union all
      select o.bucket, o.limit_id from unnest(r.other_bucket_ids, r.other_limit_ids) as o (bucket, limit_id)
    ) as c
    where r.settled_at is null
  )
  select count(*)::integer into v_removed from removed;
  return v_removed;
end;
$$;
comment on function trunkline_internal.drop_old_grants(integer, timestamptz) is 'Removes grants a day after they expire, at most p_limit, and records unsettled ones as estimated; returns how many.';
