-- Quotas and budgets, by bucket: what is spent, reserved and left, and when it will be spent at the pace of the last day.
-- An unused quota appears under the name of its limit. spent is what bucket_room counts, which readers of the view may not
-- call; a test holds the two equal. The forecast frees, hour by hour, what leaves a rolling window.
create or replace view trunkline.quotas with (security_barrier = true) as
with present as materialized (
  select n.now, extract(epoch from n.now)::double precision as epoch, floor(extract(epoch from n.now) / 3600)::bigint as hour
  from (select trunkline.clock() as now) as n
),
names as (
  select distinct on (n.bucket) n.bucket, n.name, n.limit_id from trunkline_internal.bucket_names as n order by n.bucket, n.limit_id desc
),
-- Computed once for each bucket and not for each of its hours: the offset keeps the subquery apart.
bounds as (
  select
    n.bucket,
    coalesce(n.name, l.name) as name,
    l.name as limit_name,
    l.quota_unit,
    l.quota,
    l.quota_refuses,
    l.quota_window,
    l.quota_period,
    l.quota_low_below,
    b.*,
    p.now, p.epoch, p.hour
  from trunkline_internal.limits as l
  cross join present as p
  left join names as n on n.limit_id = l.limit_id
  cross join lateral (
    select
      floor(l.quota * l.quota_buffer)::bigint as allowed,
      floor(l.quota * least(l.quota_low_share, l.quota_buffer))::bigint as low_allowed,
      extract(epoch from l.quota_window)::double precision as length,
      case
        when l.quota_period is not null then floor(extract(epoch from date_trunc(l.quota_period, p.now, 'UTC')) / 3600)
        else floor((p.epoch - extract(epoch from l.quota_window)::double precision) / 3600)
      end::bigint as since,
      -- In UTC, because the session's time zone may change its offset at the end of a month.
      case
        when l.quota_period is not null
          then (date_trunc(l.quota_period, p.now at time zone 'UTC') + ('1 ' || l.quota_period)::interval) at time zone 'UTC'
      end as resets_at
    offset 0
  ) as b
  where l.quota is not null
),
-- Charges of running attempts and open grants that are not settled yet.
reserved as (
  select r.bucket, sum(r.requests)::bigint as requests, sum(r.tokens)::bigint as tokens, sum(r.units)::bigint as units
  from (
    select i.bucket, r.cost_requests as requests, r.cost_tokens as tokens, r.cost_units as units
    from trunkline_internal.running as r
    cross join lateral unnest(r.limit_ids, r.bucket_ids) as i (limit_id, bucket)
    where not exists (
      select
      from trunkline_internal.usage as s
      where s.job_id = r.job_id and s.attempt = r.attempt and s.bucket = i.bucket and s.grant_id is null
    )
    union all
    select c.bucket, g.requests, g.tokens, g.units
    from trunkline_internal.grants as g
    cross join present as p
    cross join lateral (
      select g.bucket
      union all
      select o.bucket from unnest(g.other_bucket_ids) as o (bucket)
    ) as c
    where g.settled_at is null
      and case
        when g.job_id is null then g.expires_at > p.now
        else exists (select from trunkline_internal.running as r where r.job_id = g.job_id and r.attempt = g.attempt)
      end
  ) as r
  group by r.bucket
),
used as (
  select b.*, h.hours, h.amounts, r.*
  from bounds as b
  cross join lateral (
    select
      array_agg(h.hour) as hours,
      array_agg(h.amount) as amounts,
      sum(h.amount) filter (where h.hour >= b.since) as spent,
      sum(h.amount) filter (where h.hour >= b.hour - 23) as lately
    from (
      select q.hour, q.amount
      from trunkline_internal.quota_hours as q
      where q.bucket = b.bucket and q.hour >= least(b.since, b.hour - 23)
      union all
      select c.at / 3600, case b.quota_unit when 'requests' then c.requests when 'tokens' then c.tokens else c.units end
      from trunkline_internal.bucket_adjustments as c
      where c.bucket = b.bucket
        and c.xid >= coalesce((
          select s.adjusted_below from trunkline_internal.bucket_states as s where s.bucket = b.bucket order by s.revision desc limit 1
        ), '0'::xid8)
    ) as h
  ) as h
  cross join lateral (
    select
      coalesce(h.spent, 0)::bigint as spent,
      -- Over a day, or over the time since the first use, at least an hour.
      greatest(coalesce(h.lately, 0), 0) * 3600::double precision / greatest(b.epoch - 3600 * greatest(f.hour, b.hour - 23), 3600) as rate
    from (
      select min(q.hour) as hour from trunkline_internal.quota_hours as q where q.bucket = b.bucket
    ) as f
    offset 0
  ) as r
)
select
  u.name,
  u.limit_name as "limit",
  u.quota_unit as unit,
  u.quota,
  u.allowed,
  u.low_allowed,
  u.quota_low_below as low_below,
  u.spent,
  coalesce(case u.quota_unit when 'requests' then r.requests when 'tokens' then r.tokens else r.units end, 0) as reserved,
  greatest(u.allowed - u.spent, 0) as remaining,
  round(u.spent / nullif(u.quota, 0)::numeric, 4) as share,
  u.quota_window as "window",
  u.quota_period as period,
  to_timestamp(u.since * 3600.0) as since,
  u.resets_at,
  round(u.rate::numeric, 3) as rate_per_hour,
  case when u.spent >= u.allowed then u.now else to_timestamp(f.spent_at) end as spent_at,
  u.spent >= u.low_allowed as paused_low,
  u.spent >= u.allowed as exhausted,
  u.quota_refuses as refuses,
  case
    when u.spent >= u.allowed and u.allowed > 0 then coalesce(u.resets_at, to_timestamp(f.free_at))
  end as refused_until
from used as u
left join reserved as r on r.bucket = u.bucket
cross join lateral (
  select
    min(t.spent_at) filter (where t.spent_at < t.until) as spent_at,
    min(t.start) filter (where u.spent - t.given_back < u.allowed) as free_at
  from (
    -- Between two hours that leave the window the sum only grows. What is charged from now on leaves after all of them.
    select
      t.start,
      t.given_back,
      u.epoch + (u.allowed - u.spent + t.given_back) * 3600 / nullif(u.rate, 0) as spent_at,
      least(
        lead(t.start) over (order by t.start),
        coalesce(extract(epoch from u.resets_at)::double precision, u.epoch + u.length)
      ) as until
    from (
      select u.epoch as start, 0 as given_back
      union all
      select (h.hour + 1) * 3600 + u.length, sum(sum(h.amount)) over (order by h.hour)
      from unnest(u.hours, u.amounts) as h (hour, amount)
      -- Not needed if a whole window at this pace fits in addition.
      where h.hour >= u.since and u.quota_window is not null and u.spent + u.rate * u.length / 3600 >= u.allowed
      group by h.hour
    ) as t
  ) as t
) as f
where trunkline.tenant_scope() is null;
comment on view trunkline.quotas is 'Quotas and budgets, by bucket: what is spent, reserved and left, and when it will be spent at the pace of the last day.';
