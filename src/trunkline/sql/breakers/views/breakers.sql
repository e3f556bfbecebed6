-- Breakers, one for each bucket whose limit has one: its state, and what it counts within its window now.
-- Counts as breaker_counts does, which readers of the view may not call.
create or replace view trunkline.breakers with (security_barrier = true) as
select
  n.name,
  l.name as "limit",
  coalesce(b.state, 'closed') as state,
  f.failures,
  a.attempts,
  round(f.failures / nullif(a.attempts, 0)::numeric, 4) as share,
  l.breaker_failures,
  l.breaker_share,
  l.breaker_window,
  l.breaker_probe_after,
  b.opened_at,
  b.probe_at,
  b.probe_job,
  -- Counted up to counted_up_to: a number that reaches it means that many or more.
  (
    select count(*)
    from (
      select
      from trunkline_internal.waiting as w
      where w.bucket = n.bucket and w.state = 'ready' and w.bucket is not null
      order by w.queue, w.lane, w.sequence
      limit 10000
    ) as w
  ) as waiting,
  b.changed_at,
  b.changed_by,
  b.reason,
  10000 as counted_up_to
from (
  select distinct on (k.bucket) k.bucket, k.name, k.limit_id
  from (
    select k.bucket, k.name, k.limit_id from trunkline_internal.bucket_names as k
    union all
    select k.bucket, k.name, k.limit_id from trunkline_internal.limits as k where strpos(k.name, '{') = 0
  ) as k
  order by k.bucket, k.limit_id desc
) as n
join trunkline_internal.limits as l on l.limit_id = n.limit_id and l.breaker_failures is not null
left join trunkline_internal.breakers as b on b.bucket = n.bucket
cross join lateral (
  select count(*) as failures
  from trunkline_internal.breaker_failures as f
  where f.bucket = n.bucket and f.at > greatest(trunkline.clock() - l.breaker_window, b.closed_at)
) as f
cross join lateral (
  select greatest(sum(c.started)::bigint, f.failures) as attempts
  from (
    select s.started_at, s.started from trunkline_internal.bucket_states as s where s.bucket = n.bucket order by s.revision desc limit 1
  ) as s
  cross join lateral unnest(s.started_at, s.started) as c (minute, started)
  where c.minute >= floor(extract(epoch from trunkline.clock() - l.breaker_window) / 60)
) as a
where trunkline.tenant_scope() is null;
comment on view trunkline.breakers is 'Breakers, one for each bucket whose limit has one: its state, and what it counts within its window now.';
