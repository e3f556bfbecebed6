-- All exports in one row. The most at once follows from when each began and ended, not from looking.

with jobs as (
  select * from exports.export_jobs
),
moments as (
  select j.started_at as at, 1 as change from jobs as j where j.started_at is not null
  union all
  select j.completed_at, -1 from jobs as j where j.started_at is not null and j.completed_at is not null
),
running as (
  -- An end at the same moment comes first: its slot is what the next one got.
  select sum(m.change) over (order by m.at, m.change rows unbounded preceding) as jobs from moments as m
)
select
  (select count(*) from jobs as j where j.status = 'completed') as completed,
  (select count(*) from jobs as j where j.status = 'cancelled') as cancelled,
  (select count(*) from jobs) as jobs,
  (select coalesce(max(r.jobs), 0) from running as r) as most_at_once,
  (select count(*) from exports.export_history) as rows,
  (select coalesce(sum(h.download_count), 0) from exports.export_history as h) as counted,
  (select coalesce(sum(h.page_count), 0) from exports.export_history as h) as pages
