-- Metrics with their alerts, for operators.
-- requires: records, status, storage, cleanup
-- source: 2.13

create or replace function exports.is_served(p_task text)
returns boolean
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select
    from trunkline.workers as w
    join trunkline.tasks as t on t.task = p_task
    where w.alive and (w.queues is null or t.queue = any(w.queues)) and (w.tasks is null or t.task = any(w.tasks))
  )
$$;
comment on function exports.is_served(text) is 'Returns whether a live worker serves a task of the profile.';

create or replace view exports.metrics with (security_barrier = true) as
-- The newest 5,000: without a bound, every read would go through a month of exports.
with newest as materialized (
  select j.*
  from exports.export_jobs as j
  where j.id = any(array(select r.job_id from exports.requests as r order by r.created_at desc limit 5000))
)
select
  'jobs' as metric, n.status as label, count(*)::numeric as value,
  n.status = 'failed' and count(*) > 0
    or n.status = 'pending' and min(n.created_at) < (select trunkline.clock() - interval '5 minutes')
    and not exports.is_served(p_task => 'export_document') as alert
from newest as n
group by n.status
union all
select 'wait_seconds_p' || p.share, null,
  round((percentile_cont(p.share / 100.0) within group (order by extract(epoch from n.started_at - n.created_at)))::numeric, 3), false
from newest as n
cross join (values (50), (95)) as p (share)
where n.started_at is not null
group by p.share
union all
select 'run_seconds_mean', n.page_count || ' pages', round(avg(extract(epoch from n.completed_at - n.started_at)), 3), false
from newest as n
where n.status = 'completed' and n.page_count is not null
group by n.page_count
union all
select 'retries', null, coalesce(sum(greatest(n.attempts - 1, 0)), 0), false from newest as n
union all
select 'failures', n.error_message, count(*), false from newest as n where n.status = 'failed' group by n.error_message
union all
(
  select 'storage_megabytes', h.user_id::text, exports.as_megabytes(p_bytes => sum(h.file_size)),
    sum(h.file_size) >= (select s.storage_bytes from exports.settings as s)
  from exports.export_history as h
  where h.removal_queued_at is null and h.deleted_at is null
  group by h.user_id
  order by sum(h.file_size) desc
  limit 100
)
union all
select 'cleanup_deleted_last_day', null, coalesce(sum(c.deleted), 0), false
from exports.cleanup_results as c
where c.at > (select trunkline.clock() - interval '1 day')
union all
select 'cleanup_failed_last_day', null, coalesce(sum(c.failed), 0), coalesce(sum(c.failed), 0) > 0
from exports.cleanup_results as c
where c.at > (select trunkline.clock() - interval '1 day')
union all
select 'connections', null, d.numbackends, d.numbackends > 0.8 * current_setting('max_connections')::integer
from pg_catalog.pg_stat_database as d
where d.datname = current_database();
comment on view exports.metrics is 'Metrics, each with its alert: exports by status, waiting and running times, retries, failures by reason, storage by user, and the cleanup.';
