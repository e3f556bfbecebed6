-- Buckets, each a limit with its keys filled in: what is charged and in use now, how many jobs wait, and what the provider reported.
-- in_use, the sums of windows and spent are what bucket_room counts. Roles that read the view may not call that function, so
-- its expressions are repeated here; a property test holds the two equal.
create or replace view trunkline.buckets with (security_barrier = true) as
with present as materialized (
  select n.now, extract(epoch from n.now)::double precision as epoch, floor(extract(epoch from n.now))::bigint as second
  from (select trunkline.clock() as now) as n
)
select
  n.name,
  l.name as "limit",
  h.in_use,
  greatest(coalesce(c.requests_of_minute, 0), 0)::bigint as requests_of_minute,
  greatest(coalesce(c.requests_of_hour, 0), 0)::bigint as requests_of_hour,
  greatest(coalesce(c.tokens_of_minute, 0), 0)::bigint as tokens_of_minute,
  greatest(coalesce(c.tokens_of_hour, 0), 0)::bigint as tokens_of_hour,
  q.spent,
  -- Counted up to counted_up_to: a number that reaches it means that many or more.
  (
    select least(count(*) + a.jobs, 10000)
    from (
      select
      from trunkline_internal.waiting as w
      where w.bucket = n.bucket and w.state = 'ready' and w.bucket is not null
      order by w.queue, w.lane, w.sequence
      limit 10000
    ) as w
  ) as waiting,
  greatest(
    case when s.computed_by >= l.updated_at and s.free_at > p.now then s.free_at end,
    case when s.paused_until > p.now then s.paused_until end
  ) as free_at,
  case when s.paused_until > p.now then s.paused_until end as paused_until,
  case when s.paused_until > p.now then s.pause_reason end as pause_reason,
  coalesce(s.refused, 0) as refused,
  s.refused_at,
  b.state as breaker,
  -- Waiting jobs that cost more than the limit can ever allow, counted up to counted_up_to.
  a.jobs as set_aside,
  10000 as counted_up_to
from (
  select distinct on (n.bucket) n.bucket, n.name, n.limit_id from trunkline_internal.bucket_names as n order by n.bucket, n.limit_id desc
) as n
join trunkline_internal.limits as l on l.limit_id = n.limit_id
cross join present as p
left join lateral (
  select s.* from trunkline_internal.bucket_states as s where s.bucket = n.bucket order by s.revision desc limit 1
) as s on true
left join trunkline_internal.breakers as b on b.bucket = n.bucket
cross join lateral (
  select count(*) as jobs
  from (
    -- In the order of the index. Without it, a bucket without such jobs reads all jobs that are set aside.
    select from trunkline_internal.set_aside as a where a.bucket = n.bucket order by a.unit, a.cost, a.sequence limit 10000
  ) as a
) as a
cross join lateral (
  select count(distinct h.holder) as in_use
  from (
    select h.holder from unnest(s.holders) as h (holder)
    union all
    select h.holder
    from trunkline_internal.bucket_adjustments as c
    cross join unnest(c.holders) as h (holder)
    where c.bucket = n.bucket and c.xid >= coalesce(s.adjusted_below, '0'::xid8)
  ) as h
  where exists (select from trunkline_internal.running as r where r.job_id = h.holder)
    or exists (
      select
      from trunkline_internal.grants as g
      where g.grant_id = h.holder
        and g.settled_at is null
        and case
          when g.job_id is null then g.expires_at > p.now
          else exists (select from trunkline_internal.running as r where r.job_id = g.job_id and r.attempt = g.attempt)
        end
    )
) as h
cross join lateral (
  select
    max(c.requests) filter (where c.at > p.second - 62) as requests_of_minute,
    max(c.requests) filter (where c.at > p.second - 3602) as requests_of_hour,
    max(c.tokens) filter (where c.at > p.second - 62) as tokens_of_minute,
    max(c.tokens) filter (where c.at > p.second - 3602) as tokens_of_hour
  from (
    select c.at, sum(c.requests) over (order by c.at desc) as requests, sum(c.tokens) over (order by c.at desc) as tokens
    from (
      select c.at, c.requests, c.tokens
      from unnest(s.charged_at, s.charged_requests, s.charged_tokens) as c (at, requests, tokens)
      union all
      select
        case when c.at - c.at % 60 + 59 <= p.second - 62 then c.at - c.at % 60 + 59 else c.at end,
        case when c.at > p.second + 2 then greatest(c.requests, 0) else c.requests end,
        case when c.at > p.second + 2 then greatest(c.tokens, 0) else c.tokens end
      from trunkline_internal.bucket_adjustments as c
      where c.bucket = n.bucket and c.xid >= coalesce(s.adjusted_below, '0'::xid8)
    ) as c
    where num_nonnulls(l.requests_per_minute, l.requests_per_hour, l.tokens_per_minute, l.tokens_per_hour) > 0
  ) as c
) as c
left join lateral (
  select coalesce(sum(q.amount), 0)::bigint as spent
  from (
    -- The offset keeps the subquery apart, so that it is computed once and not for each hour.
    select
      case
        when l.quota_period is not null then floor(extract(epoch from date_trunc(l.quota_period, p.now, 'UTC')) / 3600)
        else floor((p.epoch - extract(epoch from l.quota_window)::double precision) / 3600)
      end::bigint as hour
    offset 0
  ) as since
  cross join lateral (
    select q.amount from trunkline_internal.quota_hours as q where q.bucket = n.bucket and q.hour >= since.hour
    union all
    select case l.quota_unit when 'requests' then c.requests when 'tokens' then c.tokens else c.units end
    from trunkline_internal.bucket_adjustments as c
    where c.bucket = n.bucket and c.xid >= coalesce(s.adjusted_below, '0'::xid8) and c.at / 3600 >= since.hour
  ) as q
) as q on l.quota is not null
where trunkline.tenant_scope() is null;
comment on view trunkline.buckets is 'Buckets, each a limit with its keys filled in: what is charged and in use now, how many jobs wait, and what the provider reported.';
