-- What was really used, by day, limit, task and tenant: calls, requests, tokens, units and money, as settled.
create or replace view trunkline.usage with (security_barrier = true) as
select
  s.day,
  l.name as "limit",
  nullif(s.task, '') as task,
  nullif(s.tenant, '') as tenant,
  sum(s.calls)::bigint as calls,
  sum(s.requests)::bigint as requests,
  sum(s.tokens)::bigint as tokens,
  sum(s.units)::bigint as units,
  sum(s.cost) as cost
from (
  select d.day, d.limit_id, d.task, d.tenant, d.calls, d.requests, d.tokens, d.units, d.cost
  from trunkline_internal.usage_days as d
  -- A row without calls exists only because of its late attempts.
  where d.calls > 0
  union all
  select
    (p.at at time zone 'UTC')::date, p.limit_id, coalesce(p.task, ''), coalesce(p.tenant, ''), 1, p.requests, p.tokens,
    p.units, p.cost
  from trunkline_internal.usage as p
  -- A charge that acquire took over from a claim is a row of zeros.
  where p.xid >= (select r.rolled_below from trunkline_internal.usage_roll as r) and p.requests + p.tokens + p.units + p.cost > 0
) as s
join trunkline_internal.limits as l on l.limit_id = s.limit_id
where trunkline.tenant_scope() is null or s.tenant = trunkline.tenant_scope()
group by s.day, l.name, s.task, s.tenant;
comment on view trunkline.usage is 'What was really used, by day, limit, task and tenant: calls, requests, tokens, units and money, as settled.';
