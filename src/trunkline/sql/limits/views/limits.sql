-- Limits with all of their parts, what is charged and in use now over all of their keys, and how many jobs wait.
create or replace view trunkline.limits with (security_barrier = true) as
with late as materialized (
  select s.limit_id, sum(s.late)::bigint as attempts, array_agg(s.task order by s.late desc, s.task) as tasks
  from (
    select s.limit_id, s.task, sum(s.late) as late
    from (
      select d.limit_id, d.task, d.late
      from trunkline_internal.usage_days as d
      where d.late > 0 and d.day > (trunkline.clock() at time zone 'UTC')::date - 7
      union all
      select p.limit_id, coalesce(p.task, ''), 1
      from trunkline_internal.usage as p
      where p.late and p.xid >= (select r.rolled_below from trunkline_internal.usage_roll as r)
        -- A long transaction can delay the daily sums.
        and (p.at at time zone 'UTC')::date > (trunkline.clock() at time zone 'UTC')::date - 7
    ) as s
    group by s.limit_id, s.task
  ) as s
  group by s.limit_id
)
select
  l.name,
  l.status,
  l.reason,
  l.requests_per_minute,
  l.requests_per_hour,
  l.tokens_per_minute,
  l.tokens_per_hour,
  l.concurrency,
  count(g.name) as buckets,
  coalesce(sum(g.in_use), 0)::bigint as in_use,
  coalesce(sum(g.requests_of_minute), 0)::bigint as requests_of_minute,
  coalesce(sum(g.requests_of_hour), 0)::bigint as requests_of_hour,
  coalesce(sum(g.tokens_of_minute), 0)::bigint as tokens_of_minute,
  coalesce(sum(g.tokens_of_hour), 0)::bigint as tokens_of_hour,
  -- Over all keys, up to counted_up_to: a number that reaches it means that many or more.
  least((
    select count(*)
    from (
      select
      from (
        select distinct n.bucket
        from trunkline_internal.bucket_names as n
        where n.limit_id = l.limit_id
          and not exists (select from trunkline_internal.bucket_names as k where k.bucket = n.bucket and k.limit_id > n.limit_id)
      ) as n
      cross join lateral (
        select
        from trunkline_internal.waiting as w
        where w.bucket = n.bucket and w.state = 'ready' and w.bucket is not null
        order by w.queue, w.lane, w.sequence
        limit 10000
      ) as w
      limit 10000
    ) as w
  ) + coalesce(sum(g.set_aside), 0), 10000)::bigint as waiting,
  coalesce(sum(g.refused), 0)::bigint as refused,
  max(g.refused_at) as refused_at,
  max(g.paused_until) as paused_until,
  l.quota,
  l.quota_unit,
  l.quota_window,
  l.quota_period,
  l.quota_buffer,
  l.quota_low_share,
  l.quota_low_below,
  l.quota_refuses,
  coalesce(sum(g.spent), 0)::bigint as spent,
  l.breaker_failures,
  l.breaker_share,
  l.breaker_window,
  l.breaker_probe_after,
  l.backpressure_threshold,
  l.backpressure_delay,
  l.depth_limit,
  l.depth_refuses,
  l.weight,
  l.share_cap,
  l.share_group,
  l.created_at,
  l.updated_at,
  l.updated_by,
  -- Of the fullest key; null if no part is a number, or all parts are zero.
  round(max(greatest(
    g.in_use / nullif(l.concurrency, 0)::numeric,
    g.requests_of_minute / nullif(l.requests_per_minute, 0)::numeric,
    g.requests_of_hour / nullif(l.requests_per_hour, 0)::numeric,
    g.tokens_of_minute / nullif(l.tokens_per_minute, 0)::numeric,
    g.tokens_of_hour / nullif(l.tokens_per_hour, 0)::numeric,
    g.spent / nullif(floor(l.quota * l.quota_buffer), 0)
  )), 4) as fullness,
  -- Late attempts of the last seven days, and their tasks, most frequent first. They ran long after their charge without a
  -- grant or a settlement, so calls through their own client may have exceeded the limit.
  coalesce(max(t.attempts), 0) as late,
  coalesce(max(t.tasks), '{}') as late_tasks,
  -- Waiting jobs that cost more than the limit can ever allow, counted up to counted_up_to.
  least(coalesce(sum(g.set_aside), 0), 10000)::bigint as set_aside,
  10000 as counted_up_to
from trunkline_internal.limits as l
left join trunkline.buckets as g on g."limit" = l.name
left join late as t on t.limit_id = l.limit_id
where trunkline.tenant_scope() is null
group by l.limit_id;
comment on view trunkline.limits is 'Limits with all of their parts, what is charged and in use now over all of their keys, and how many jobs wait.';
