-- Returns what a job really used, by attempt and limit: calls, requests, tokens, units and money; no row for jobs that the caller may not see.
-- As settled, or as estimated if the attempt ended without a settlement; a running attempt appears when it settles or ends.
-- A call under several limits appears for each of them, its money once. Rows are kept for 35 days. An attempt that costs
-- only requests and settles nothing has none.
create or replace function trunkline.usage_of_job(p_job uuid)
returns setof trunkline.job_usage
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_scope text := trunkline.tenant_scope();
begin
  return query
  select
    l.name,
    coalesce((select n.name from trunkline_internal.bucket_names as n where n.bucket = s.bucket order by n.limit_id desc limit 1), l.name),
    s.attempt,
    count(*),
    sum(s.requests)::bigint,
    sum(s.tokens)::bigint,
    sum(s.units)::bigint,
    sum(s.cost)
  from (
    -- Two branches, each with its own index.
    select p.bucket, p.limit_id, p.attempt, p.tenant, p.requests, p.tokens, p.units, p.cost
    from trunkline_internal.usage as p
    where p.job_id = p_job and p.grant_id is null
    union all
    select p.bucket, p.limit_id, p.attempt, p.tenant, p.requests, p.tokens, p.units, p.cost
    from trunkline_internal.usage as p
    where p.job_id = p_job and p.grant_id is not null
    union all
    -- Grants of ended attempts that were never settled. The usage ledger gets them a day later.
    select c.bucket, c.limit_id, g.attempt, g.tenant, g.requests, g.tokens, g.units, 0
    from trunkline_internal.grants as g
    cross join lateral (
      select g.bucket, g.limit_id
      union all
      select o.bucket, o.limit_id from unnest(g.other_bucket_ids, g.other_limit_ids) as o (bucket, limit_id)
    ) as c
    where g.job_id = p_job
      and g.settled_at is null
      and not exists (select from trunkline_internal.running as r where r.job_id = g.job_id and r.attempt = g.attempt)
  ) as s
  join trunkline_internal.limits as l on l.limit_id = s.limit_id
  where (v_scope is null or s.tenant = v_scope)
    -- A charge that acquire took over from a claim is a row of zeros.
    and s.requests + s.tokens + s.units + s.cost > 0
  group by s.attempt, l.name, s.bucket
  order by s.attempt, 1, 2;
end;
$$;
comment on function trunkline.usage_of_job(uuid) is 'Returns what a job really used, by attempt and limit: calls, requests, tokens, units and money; no row for jobs that the caller may not see.';
