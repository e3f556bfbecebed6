-- Functions for operators: dead letters, cancellation, and metrics.
-- requires: jobs, audit, files, limits
-- source: added (alerts, dead letters, cancellation, metrics)

create or replace function clinical.list_dead_letters(p_job_type text default null, p_reason text default null, p_limit integer default 100)
returns table (
  job_id uuid, job_type text, patient_id uuid, dead_letter_at timestamptz, reason text, retry_count integer,
  error_details jsonb, acknowledged_at timestamptz, acknowledged_by text
)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select
    d.job_id, d.task, clinical.as_uuid(p_text => d.tenant), d.died_at, e.details ->> 'dead_letter_reason',
    least(d.failures::integer, d.max_attempts - 1), e.details, d.acknowledged_at, d.acknowledged_by
  -- Bounded before it is filtered; otherwise, a selective filter would read all of them.
  from (select d.* from trunkline.dead_letters as d order by d.died_at desc limit 20000) as d
  join clinical.job_types as t on t.job_type = d.task
  cross join lateral (
    select
      coalesce(clinical.error_details(p_job => d.job_id, p_since => d.created_at), '{}'::jsonb)
      || jsonb_build_object('engine_reason', d.reason) as details
  ) as e
  where (p_job_type is null or d.task = p_job_type)
    and (p_reason is null or p_reason in (d.reason, e.details ->> 'dead_letter_reason'))
  order by d.died_at desc
  limit p_limit
$$;
comment on function clinical.list_dead_letters(text, text, integer) is 'Dead letters, newest first, by type and reason, among the newest 20,000 of the database.';

create or replace function clinical.require_own(p_job uuid)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (select from trunkline.job(p_job => p_job) as j join clinical.job_types as t on t.job_type = j.task) then
    perform clinical.refuse(
      p_code => 'job_id_missing', p_message => format('there is no job %s here', p_job), p_detail => jsonb_build_object('job_id', p_job)
    );
  end if;
end;
$$;
comment on function clinical.require_own(uuid) is 'Refuses the id of a job that is unknown or of another profile.';

create or replace function clinical.requeue_dead_letter(p_job_id uuid)
returns uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform clinical.require_own(p_job => p_job_id);
  return (trunkline.retry(p_job => p_job_id)).job_id;
end;
$$;
comment on function clinical.requeue_dead_letter(uuid) is 'Requeues a dead letter with a new budget of attempts; the audit records the caller.';

create or replace function clinical.acknowledge_dead_letter(p_job_id uuid)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform clinical.require_own(p_job => p_job_id);
  return (trunkline.acknowledge(p_job => p_job_id)).outcome;
end;
$$;
comment on function clinical.acknowledge_dead_letter(uuid) is 'Marks a dead letter as acknowledged; it is kept for 30 more days.';

create or replace function clinical.cancel_job(p_job_id uuid, p_reason text default null)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform clinical.require_own(p_job => p_job_id);
  return (trunkline.cancel(p_job => p_job_id, p_reason => p_reason)).outcome;
end;
$$;
comment on function clinical.cancel_job(uuid, text) is 'Cancels a waiting job at once, a running one at its next heartbeat; returns which.';

create or replace view clinical.metrics with (security_barrier = true) as
-- The newest 5,000 jobs of each kind: without a bound, every read would go through the whole backlog and a month of jobs.
with newest as materialized (
  select j.job_id, j.task, j.state, j.reason, j.deferrals, j.created_at, j.run_at, j.claimed_at, j.finished_at, t.api_endpoint
  from (
    values ('{ready, scheduled, blocked}'::text[]), ('{running}'), ('{dead}'), ('{completed, cancelled}')
  ) as k (states)
  cross join lateral trunkline.find_jobs(p_states => k.states, p_limit => 5000) as p
  cross join lateral unnest(p.jobs) as j
  join clinical.job_types as t on t.job_type = j.task
)
-- Finished jobs only of the last day.
select
  'jobs' as metric, clinical.job_status(p_state => j.state, p_reason => j.reason) || ' ' || j.task as label,
  count(*)::numeric as value, false as alert
from newest as j
where j.state not in ('completed', 'cancelled') or j.finished_at > (select trunkline.clock() - interval '1 day')
group by 2
union all
-- Due jobs that are not promoted yet are searched only among the first 1,000 due jobs of the database.
select 'oldest_waiting_seconds', null, coalesce(round(extract(epoch from (select trunkline.clock()) - min(w.run_at)), 1), 0), false
from (
  select s.oldest_ready_at as run_at
  from trunkline.queue_sizes(
    p_queues => array(select k.queue from trunkline.tasks as k join clinical.job_types as t on t.job_type = k.task)
  ) as s
  union all
  select d.run_at
  from (
    select j.run_at, j.task
    from trunkline.jobs as j
    where j.state = 'scheduled' and j.run_at <= (select trunkline.clock())
    order by j.run_at
    limit 1000
  ) as d
  join clinical.job_types as t on t.job_type = d.task
  union all
  select j.run_at
  from trunkline.deferred_jobs(p_limit => 1000) as j
  join clinical.job_types as t on t.job_type = j.task
  where j.state = 'blocked'
) as w
union all
-- Objective: 99 of 100 due jobs are claimed within five seconds while a worker is idle. Only of types without an endpoint:
-- the others may wait for their limit.
select
  'claim_latency_seconds_p99', null,
  coalesce(round((percentile_cont(0.99) within group (order by w.seconds))::numeric, 3), 0),
  coalesce(percentile_cont(0.99) within group (order by w.seconds) >= 5, false)
from newest as j
cross join lateral (select greatest(extract(epoch from j.claimed_at - j.run_at), 0)::double precision as seconds) as w
where j.api_endpoint is null
  and j.claimed_at > (select trunkline.clock() - interval '1 hour')
  and (j.finished_at is null or j.finished_at > (select trunkline.clock() - interval '1 hour'))
union all
select
  'oldest_heartbeat_seconds', null, coalesce(round(extract(epoch from max(m.liveness_age)), 1), 0),
  -- Objective: a lost job is back within its timeout and 60 seconds.
  coalesce(max(m.liveness_age - m.lease) > interval '60 seconds', false)
from trunkline.stale_monitor as m
join clinical.job_types as t on t.job_type = m.task
union all
select 'reclaims_last_hour', null, count(*), false
from trunkline.reclaim_history as h
join clinical.job_types as t on t.job_type = h.task
where h.at > (select trunkline.clock() - interval '1 hour')
union all
select 'dead_letters_last_hour', null, count(*), false
from trunkline.dead_letters as d
join clinical.job_types as t on t.job_type = d.task
where d.died_at > (select trunkline.clock() - interval '1 hour')
union all
select 'deferrals_last_hour', null, count(*), false
from trunkline.events as e
join clinical.job_types as t on t.job_type = e.task
where e.kind = 'snoozed' and e.at > (select trunkline.clock() - interval '1 hour')
union all
-- A job that is deferred or set aside forever never fails, so only this metric shows it.
select 'deferred_without_progress', null, count(*), count(*) > 0
from (
  select j.job_id, j.state, j.deferrals, j.created_at
  from trunkline.deferred_jobs(p_limit => 5000) as j
  join clinical.job_types as t on t.job_type = j.task
  union all
  select j.job_id, j.state, j.deferrals, j.created_at from newest as j where j.state = 'running'
) as j
cross join (
  select trunkline.clock() - make_interval(hours => clinical.configured(p_key => 'queue.max_deferral_age_hours')::integer) as before
) as c
where j.deferrals > (select clinical.configured(p_key => 'queue.max_deferrals')::integer)
  or j.deferrals > 0 and j.created_at < c.before
  -- The event may have been dropped; then the job is even older.
  or j.state = 'blocked' and c.before > coalesce(
    (
      select max(e.at)
      from trunkline.events as e
      where e.job_id = j.job_id and e.at >= j.created_at - interval '1 minute' and e.kind = 'set_aside'
    ),
    j.created_at
  )
union all
select 'permits_in_use', l.provider_name || '/' || l.api_endpoint, l.active_requests, false from clinical.api_rate_limits as l
union all
select 'refusals', l.provider_name || '/' || l.api_endpoint, l.rate_limit_violations, false from clinical.api_rate_limits as l
union all
select 'tokens_of_minute', l.provider_name || '/' || l.api_endpoint, l.current_tokens_minute, l.current_tokens_minute > l.tokens_per_minute
from clinical.api_rate_limits as l
union all
select 'audit_without_patient', null, count(*), count(*) > 0
from clinical.audit_log as a
left join clinical.job_types as t on t.job_type = a.new_values ->> 'job_type'
where a.patient_id is null
  and a.at > (select trunkline.clock() - interval '1 day')
  and (a.table_name in ('shell_files', 'clinical_records', 'client_event') or t.needs_file)
union all
-- Objective: none. Every completion is one event of its job.
select 'double_completions', null, count(*), count(*) > 0
from (
  select e.job_id
  from trunkline.events as e
  join clinical.job_types as t on t.job_type = e.task
  where e.kind = 'completed' and e.at > (select trunkline.clock() - interval '1 day')
  group by e.job_id
  having count(*) > 1
) as c;
comment on view clinical.metrics is 'Metrics, each with its alert: jobs by status and type, ages, latency, reclaims, dead letters, deferrals, capacity, and counts that must be zero.';
