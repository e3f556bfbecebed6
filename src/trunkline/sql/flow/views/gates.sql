-- Gates, a limit with its keys filled in each: what is given out of it now and how many jobs wait for it.
create or replace view trunkline.gates with (security_barrier = true) as
select
  n.name,
  l.name as "limit",
  h.in_use,
  coalesce(c.requests_of_minute, 0)::bigint as requests_of_minute,
  coalesce(c.requests_of_hour, 0)::bigint as requests_of_hour,
  coalesce(c.tokens_of_minute, 0)::bigint as tokens_of_minute,
  coalesce(c.tokens_of_hour, 0)::bigint as tokens_of_hour,
  (
    select count(*) from trunkline_internal.waiting as w where w.gate = n.gate and w.state = 'ready' and w.gate is not null
  ) as waiting,
  case when s.reckoned_by >= l.updated_at and s.free_at > trunkline.clock() then s.free_at end as free_at
from (
  select distinct on (n.gate) n.gate, n.name, n.limit_id from trunkline_internal.gate_names as n order by n.gate, n.limit_id desc
) as n
join trunkline_internal.limits as l on l.limit_id = n.limit_id
left join lateral (
  select s.* from trunkline_internal.gate_states as s where s.gate = n.gate order by s.epoch desc limit 1
) as s on true
cross join lateral (
  select count(*) as in_use
  from unnest(s.holders) as h (holder)
  where exists (select from trunkline_internal.running as r where r.job_id = h.holder)
) as h
cross join lateral (
  select
    sum(c.requests) filter (where c.at > extract(epoch from trunkline.clock()) - 60) as requests_of_minute,
    sum(c.requests) filter (where c.at > extract(epoch from trunkline.clock()) - 3600) as requests_of_hour,
    sum(c.tokens) filter (where c.at > extract(epoch from trunkline.clock()) - 60) as tokens_of_minute,
    sum(c.tokens) filter (where c.at > extract(epoch from trunkline.clock()) - 3600) as tokens_of_hour
  from unnest(s.charged_at, s.charged_requests, s.charged_tokens) as c (at, requests, tokens)
) as c
where trunkline.tenant_scope() is null;
comment on view trunkline.gates is 'Gates, a limit with its keys filled in each: what is given out of it now and how many jobs wait for it.';
