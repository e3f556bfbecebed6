"""Fills a database with waiting, finished and dead jobs by copying a few real ones."""

from typing import Any

import psycopg

from trunkline import profiles
from trunkline.profiles import installer

__all__ = ["fill", "install_profiles"]

# Time between jobs: a larger stock reaches further back, but the last hour is always the same.
_SPACING = {
    "waiting": 0.1,
    "set_aside": 4.0,
    "finished": 0.12,
    "dead": 1.0,
    "events": 9.0,
    "workflows": 4.0,
    "artifacts": 1.2,
}
# What reaches further back than the partitions of today.
_DATED = ("set_aside", "finished", "events", "workflows")
_RUNNING = 500
# Lists of workflows read all that are kept, which workflow_retention bounds, not the backlog.
_WORKFLOWS_KEPT = 5_000
# Rows of one statement, so that no statement takes minutes.
_BATCH = 500_000

_PROTOTYPES = """
select
  trunkline.set_limit('stock', '{"concurrency": 1, "requests_per_minute": 100, "quota": 9000}'),
  trunkline.set_limit('stock/{k}', '{"concurrency": 1, "breaker_failures": 5}'),
  trunkline.register_task('stock'),
  trunkline.register_task('stock_limited', p_limits => '{stock}'),
  trunkline.register_task('stock_keyed', p_limits => '{"stock/{k}"}'),
  trunkline.set_limit('stock_small', '{"tokens_per_minute": 1000}'),
  trunkline.register_task('stock_large', p_limits => '{stock_small}', p_cost => '{"tokens": 1000}'),
  trunkline.set_schedule('stock', '@daily', 'stock'),
  executor.set_job_type(
    p_type => 'stock_type', p_ttl => interval '1 hour', p_queue => 'stock_executor'
  );
select trunkline.enqueue('stock', p_queue => 'stock_put_off');
select trunkline.register_worker('stock', '{stock_put_off}');
select trunkline.snooze('stock', array[c.job_id], array[c.attempt], array[interval '1 day'])
from trunkline.claim('stock', '{stock_put_off}') as c;
select trunkline.enqueue_many(jsonb_agg(j.job)) from (
  select jsonb_build_object('task', 'stock', 'queue', 'stock') as job from generate_series(1, 2)
  union all select '{"task": "stock", "queue": "stock_urgent", "priority": 10}'
  union all select '{"task": "stock", "queue": "stock", "delay": "10 days"}'
  union all select '{"task": "stock_limited", "queue": "stock"}'
  union all select '{"task": "stock_keyed", "queue": "stock", "payload": {"k": "key"}}'
) as j;
create temporary table stock_prototypes as
select row_number() over () - 1 as place, w.* from trunkline_internal.waiting as w;
select trunkline.enqueue('stock_large', p_queue => 'stock');
select trunkline.set_limit('stock_small', '{"tokens_per_minute": 900}');
create temporary table stock_set_aside as
select p.place, p.to_task, p.to_queue, a.bucket, a.limit_id, a.unit, a.cost, w.max_attempts, w.lane,
  w.cost_requests, w.cost_tokens, w.cost_units, w.limit_ids, w.bucket_ids,
  w.bucket as waits_for
from trunkline_internal.set_aside as a
join trunkline_internal.waiting as w on w.job_id = a.job_id
cross join (
  values (0, 'stock_large', 'stock'), (1, 'report_generation', 'clinical')
) as p (place, to_task, to_queue);
insert into stock_prototypes
select (jsonb_populate_record(o.row, jsonb_build_object(
  'place', (select count(*) from stock_prototypes) - 1 + t.place, 'task', t.task, 'queue', t.queue
))).*
from (
  values
    (1, 'report_generation', 'clinical'), (2, 'stock_type', 'stock_executor'),
    (3, 'text_generation', 'studio')
) as t (place, task, queue)
cross join (
  select p as row from stock_prototypes as p
  where p.queue = 'stock' and p.state = 'ready' and p.bucket is null limit 1
) as o;
insert into trunkline_internal.lanes (queue, lane)
select distinct p.queue, p.lane from stock_prototypes as p
where not exists (
  select from trunkline_internal.lanes as l where l.queue = p.queue and l.lane = p.lane
);
"""

# One row for each day of the stock, so that the duty creates all partitions.
_DAYS = """
insert into trunkline_internal.finished
  (job_id, finished_at, claimed_at, run_at, created_at, attempt, failures, deferrals, max_attempts,
   priority, state, queue, task, worker, payload)
select gen_random_uuid(), now() - d * interval '1 day', now(), now(), now(), 1, 0, 0, 4, 0,
  'completed', 'stock', 'stock', 'stock', '{}'
from generate_series(1, %(days)s) as d;
insert into trunkline_internal.events (at, job_id, attempt, kind, task, queue, actor)
select now() - d * interval '1 day', gen_random_uuid(), 1, 'failed', 'stock', 'stock', 'stock'
from generate_series(1, %(days)s) as d;
select trunkline.maintain_partitions();
"""

_ID = """
(trunkline_internal.new_id_prefix(p_now => t.at) || substr(gen_random_uuid()::text, 16))::uuid
"""

_WAITING = f"""
insert into trunkline_internal.waiting
  (job_id, sequence, run_at, created_at, deferred_since, attempt, deferrals, max_attempts, lane,
   state, queue, task, payload, bucket,
   cost_requests, cost_tokens, cost_units, limit_ids, bucket_ids)
select {_ID}, case when p.state = 'ready' then nextval('trunkline_internal.job_sequence') end,
  case when p.state = 'ready' then t.at else p.run_at end, t.at, p.deferred_since, p.attempt,
  p.deferrals, p.max_attempts, p.lane, p.state, p.queue, p.task, p.payload, p.bucket,
  p.cost_requests, p.cost_tokens, p.cost_units, p.limit_ids, p.bucket_ids
from generate_series(%(first)s, %(last)s) as n
cross join lateral (select now() - n * %(spacing)s * interval '1 second' as at) as t
join stock_prototypes as p on p.place = n %% %(prototypes)s
"""

_SET_ASIDE = f"""
with jobs as (
  insert into trunkline_internal.waiting
    (job_id, run_at, created_at, attempt, deferrals, max_attempts, lane, state, queue, task,
     payload, bucket,
   cost_requests, cost_tokens, cost_units, limit_ids, bucket_ids)
  select {_ID}, t.at, t.at, 0, 0, p.max_attempts, p.lane, 'blocked', p.to_queue, p.to_task,
    '{{}}', p.waits_for,
    p.cost_requests, p.cost_tokens, p.cost_units, p.limit_ids, p.bucket_ids
  from generate_series(%(first)s, %(last)s) as n
  cross join lateral (select now() - n * %(spacing)s * interval '1 second' as at) as t
  join stock_set_aside as p on p.place = n %% 2
  returning job_id, created_at, queue, task
)
insert into trunkline_internal.set_aside
  (job_id, bucket, limit_id, unit, cost, sequence, since, queue, task)
select j.job_id, p.bucket, p.limit_id, p.unit, p.cost,
  nextval('trunkline_internal.job_sequence'), j.created_at, j.queue, j.task
from jobs as j
join stock_set_aside as p on p.to_task = j.task
"""

_FINISHED = f"""
with jobs as (
  insert into trunkline_internal.finished
    (job_id, finished_at, claimed_at, run_at, created_at, attempt, failures, deferrals,
     max_attempts, priority, state, queue, task, worker, payload, tags, correlation_id)
  select {_ID}, t.at, t.at, t.at, t.at, 1, 0, 0, 4, 0, 'completed', 'stock',
    (array['stock', 'report_generation', 'stock_type'])[1 + n %% 3], 'stock', '{{"number": 1}}',
    '{{stock}}', 'stock_' || n / 1000
  from generate_series(%(first)s, %(last)s) as n
  cross join lateral (select now() - n * %(spacing)s * interval '1 second' as at) as t
  returning job_id, correlation_id
)
insert into trunkline_internal.job_labels (label, job_id)
select l.label, j.job_id
from jobs as j
cross join lateral (
  values
    (trunkline_internal.label_of(p_kind => 'tag', p_value => 'stock')),
    (trunkline_internal.label_of(p_kind => 'correlation_id', p_value => j.correlation_id))
) as l (label)
"""

_DEAD = f"""
insert into trunkline_internal.dead
  (job_id, died_at, run_at, created_at, attempt, failures, crashes, deferrals, max_attempts,
   priority, queue, task, reason, payload, acknowledged_at, acknowledged_by, error_group)
select {_ID}, t.at, t.at, t.at, 4, 4, 0, 0, 4, 0, 'stock',
  (array['stock', 'report_generation', 'stock_type'])[1 + n %% 3], 'attempts_exhausted', '{{}}',
  case when n %% 2 = 0 then now() end, case when n %% 2 = 0 then 'stock' end,
  case when n %% 5 < 2 then 'group 1' else 'group ' || 2 + n %% 19 end
from generate_series(%(first)s, %(last)s) as n
cross join lateral (select now() - n * %(spacing)s * interval '1 second' as at) as t
"""

# Orders of the profile studio that are complete, each with one of its documents.
_WORKFLOWS = f"""
with orders as (
  insert into trunkline_internal.workflows
    (workflow_id, created_at, ended_at, jobs, name, state, tenant)
  select {_ID}, t.at, t.at, 1, 'nuclear_v2', 'completed', 'stock'
  from generate_series(%(first)s, %(last)s) as n
  cross join lateral (select now() - n * %(spacing)s * interval '1 second' as at) as t
  returning workflow_id, created_at as at
),
steps as (
  insert into trunkline_internal.workflow_steps
    (workflow_id, place, items, expanded, ended_at, kind, name, state, task, phase)
  select o.workflow_id, 0, 1, 1, o.at, 'job', 'text_1', 'completed', 'text_generation', 'text'
  from orders as o
),
jobs as (
  insert into trunkline_internal.finished
    (job_id, finished_at, claimed_at, run_at, created_at, attempt, failures, deferrals,
     max_attempts, priority, state, queue, task, worker, payload, workflow_id, workflow_step,
     tenant)
  select {_ID}, t.at, t.at, t.at, t.at, 1, 0, 0, 3, 0, 'completed', 'studio', 'text_generation',
    'stock', '{{}}', t.workflow_id, 0, 'stock'
  from orders as t
  returning job_id, finished_at, workflow_id
)
insert into trunkline_internal.workflow_ends
  (workflow_id, step, item, job_id, finished_at, state)
select j.workflow_id, 0, 0, j.job_id, j.finished_at, 'completed' from jobs as j
"""

# Files of finished jobs, none of them of an order above.
_ARTIFACTS = f"""
with files as (
  insert into trunkline_internal.artifacts
    (artifact_id, job_id, workflow_id, published_at, bytes, attempt, tenant, task, name, kind,
     content_type, path, sha256)
  select {_ID}, gen_random_uuid(), gen_random_uuid(), t.at, 1000, 1, 'stock', 'text_generation',
    'chapter.pdf', 'pdf', 'application/pdf', 'stock/' || n, repeat('0', 64)
  from generate_series(%(first)s, %(last)s) as n
  cross join lateral (select now() - n * %(spacing)s * interval '1 second' as at) as t
  returning bytes
)
insert into trunkline_internal.storage_usage (bytes, files, tenant)
select sum(f.bytes), count(*), 'stock' from files as f having count(*) > 0
"""

_EVENTS = """
insert into trunkline_internal.events
  (at, job_id, attempt, kind, to_state, task, queue, worker, actor, detail)
select now() - n * %(spacing)s * interval '1 second', gen_random_uuid(), 1,
  (array['lost', 'snoozed', 'failed'])[1 + n %% 3], 'scheduled',
  (array['stock', 'report_generation', 'stock_type'])[1 + n / 3 %% 3], 'stock', 'stock', 'stock',
  '{}'
from generate_series(%(first)s, %(last)s) as n
"""

_RUNS = """
insert into trunkline_internal.running
  (job_id, sequence, claimed_at, lease_expires_at, hard_deadline, run_at, created_at, attempt,
   failures, crashes, deferrals, max_attempts, lane, audit, queue, task, worker, payload)
select gen_random_uuid(), n, now(), now() + interval '1 day', now() + interval '1 day', now(),
  now(), 1, 0, 0, 0, 4, 0, false, 'stock', 'stock', 'stock', '{}'
from generate_series(1, %(running)s) as n
"""

_STATEMENTS = {
    "waiting": _WAITING,
    "set_aside": _SET_ASIDE,
    "finished": _FINISHED,
    "dead": _DEAD,
    "events": _EVENTS,
    "workflows": _WORKFLOWS,
    "artifacts": _ARTIFACTS,
}


def install_profiles(dsn: str) -> None:
    """Install the profiles, because their views are measured too."""
    for name in profiles.names():
        profile = profiles.get(name)
        installer.install(dsn, profile, [phase.name for phase in profile.phases])


def fill(
    connection: psycopg.Connection[Any], *, waiting: int, set_aside: int, finished: int, dead: int
) -> None:
    """Insert the jobs, an event for every ten waiting jobs, workflows, and a file for every ten
    finished jobs."""
    with psycopg.ClientCursor(connection) as cursor:
        cursor.execute(_PROTOTYPES)
        cursor.execute("select count(*) from stock_prototypes")
        (prototypes,) = cursor.fetchone() or (0,)
        rows = {
            "waiting": waiting,
            "set_aside": set_aside,
            "finished": finished,
            "dead": dead,
            "events": waiting // 10,
            "workflows": min(waiting // 20, _WORKFLOWS_KEPT),
            "artifacts": finished // 10,
        }
        reach = max(rows[table] * _SPACING[table] for table in _DATED)
        cursor.execute(_DAYS, {"days": int(reach / 86400) + 1})
        cursor.execute(_RUNS, {"running": _RUNNING})
        for table, statement in _STATEMENTS.items():
            for first in range(1, rows[table] + 1, _BATCH):
                values = {
                    "first": first,
                    "last": min(first + _BATCH - 1, rows[table]),
                    "spacing": _SPACING[table],
                    "prototypes": prototypes,
                }
                cursor.execute(statement, values)
