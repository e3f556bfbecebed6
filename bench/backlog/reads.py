"""The reads of an operator: every view, every read-only function, every command; and bulk changes.

`tests/plans` fails if a view, function or command is in none of these lists.
"""

from typing import Any, Final
from uuid import UUID

import psycopg

__all__ = [
    "BATCHES",
    "COMMANDS",
    "FIRST_PAGES",
    "FIRST_PAGE_CALLS",
    "FUNCTIONS",
    "NOT_COMMANDS",
    "NOT_FUNCTIONS",
    "NOT_VIEWS",
    "SCHEMAS",
    "VIEWS",
    "commands",
    "names",
    "queries",
    "subjects",
]

NOT_VIEWS: Final = {
    "clinical.configuration_keys": "a list written in the view itself",
    "clinical.rollout_steps": "a list written in the view itself",
    "studio.artifact_types": "a list written in the view itself",
    "studio.rollout_steps": "a list written in the view itself",
    "studio.systems": "a list written in the view itself",
}

# What is read of some views besides their first page, in the way in which users of the profile ask.
VIEWS: Final = {
    "studio.job_artifacts": ["studio.job_artifacts where job_id = %(workflow)s"],
    "studio.job_tasks": ["studio.job_tasks where job_id = %(workflow)s"],
    "studio.jobs": ["studio.jobs where id = %(workflow)s"],
    "studio.my_tasks": ["studio.my_tasks where job_id = %(workflow)s"],
}

# An order of the stock has one task, but a real one 48: a hundred tasks are those of three orders.
_PAGES: Final = {"studio.job_tasks": 3, "studio.my_tasks": 3}

# The first page by tag, correlation id and time: at most 50 ms with five million finished jobs.
FIRST_PAGE_CALLS: Final = (
    """trunkline.search_jobs('{"tag": "stock"}', 20)""",
    """trunkline.search_jobs('{"correlation_id": "stock_1000"}', 20)""",
    """trunkline.search_jobs(jsonb_build_object(
      'finished_from', now() - interval '2 days', 'finished_before', now() - interval '1 day'
    ), 20)""",
    """trunkline.search_jobs(jsonb_build_object(
      'state', 'completed',
      'created_from', now() - interval '2 days', 'created_before', now() - interval '1 day'
    ), 20)""",
)

# One batch of each bulk change, of jobs that nearly the whole backlog is like, and of none.
BATCHES: Final = (
    """trunkline.cancel_jobs('{"task": "stock"}', p_limit => 100)""",
    """trunkline.cancel_jobs('{"task": "nobody knows it"}', p_limit => 100)""",
    """trunkline.retry_jobs('{"state": "dead", "task": "stock"}', p_limit => 100)""",
    """trunkline.retry_jobs('{"state": "completed", "tag": "stock"}', p_limit => 100)""",
    """trunkline.retry_jobs('{"state": "dead", "task": "nobody knows it"}', p_limit => 100)""",
    """trunkline.reprioritise_jobs('{"task": "stock"}', 7, p_limit => 100)""",
    """trunkline.reprioritise_jobs('{"task": "nobody knows it"}', 7, p_limit => 100)""",
    """trunkline.discard_jobs('{"state": "dead", "task": "stock"}', p_limit => 100)""",
    """trunkline.discard_jobs('{"state": "dead", "error_group": "group 1"}', p_limit => 100)""",
    """trunkline.acknowledge_jobs('{"acknowledged": false}', p_limit => 100)""",
    """trunkline.acknowledge_jobs('{"error": "nobody has it"}', p_limit => 100)""",
)

# Calls by function; %(job)s is a waiting job, %(workflow)s a workflow.
FUNCTIONS: Final = {
    "trunkline.count_jobs": [
        "trunkline.count_jobs()",
        """trunkline.count_jobs('{"task": "nobody knows it"}')""",
        """trunkline.count_jobs('{"tag": "stock"}')""",
    ],
    "trunkline.dead_letter_groups": [
        "trunkline.dead_letter_groups()",
        """trunkline.dead_letter_groups('{"task": "nobody knows it"}')""",
    ],
    "trunkline.deferred_jobs": ["trunkline.deferred_jobs()"],
    "trunkline.explain": ["trunkline.explain(%(job)s)"],
    "trunkline.find_jobs": [
        "trunkline.find_jobs()",
        "trunkline.find_jobs(p_task => 'nobody knows it')",
        "trunkline.find_jobs(p_queue => 'stock_urgent', p_states => '{scheduled, cancelled}')",
        "trunkline.find_jobs(p_tenant => 'nobody')",
    ],
    "trunkline.find_workflows": [
        "trunkline.find_workflows()",
        "trunkline.find_workflows(p_states => '{queued, running}', p_names => '{nobody knows it}')",
    ],
    "trunkline.health": ["trunkline.health()"],
    "trunkline.job": ["trunkline.job(%(job)s)"],
    "trunkline.list_jobs": ["trunkline.list_jobs()", "trunkline.list_jobs('{completed}')"],
    "trunkline.live_jobs": ["trunkline.live_jobs(array[%(job)s::uuid], '{0}', '{0}')"],
    "trunkline.next_due": ["trunkline.next_due('@daily')"],
    "trunkline.queue_sizes": ["trunkline.queue_sizes()"],
    "trunkline.recent_activity": [
        "trunkline.recent_activity(now() - interval '1 hour')",
        "trunkline.recent_activity(now() - interval '1 hour', p_task => 'nobody knows it')",
    ],
    "trunkline.resolve_job": [
        "trunkline.resolve_job(left(%(job)s::text, 8))",
        "trunkline.resolve_job(left(%(dead)s::text, 13))",
        "trunkline.resolve_job('00000000')",
    ],
    "trunkline.schema_release": ["trunkline.schema_release()"],
    "trunkline.schema_version": ["trunkline.schema_version()"],
    "trunkline.search_jobs": [
        "trunkline.search_jobs()",
        """trunkline.search_jobs('{"task": "nobody knows it"}')""",
        """trunkline.search_jobs('{"tag": "stock"}')""",
        """trunkline.search_jobs('{"tag": "stock", "error": "nobody has it"}')""",
        """trunkline.search_jobs('{"correlation_id": "nobody"}')""",
        *FIRST_PAGE_CALLS,
        """trunkline.search_jobs('{"error_group": "group 1"}')""",
        """trunkline.search_jobs('{"error_group": "group 1", "task": "nobody"}')""",
        """trunkline.search_jobs('{"unique_key": "nobody"}')""",
        """trunkline.search_jobs('{"state": "dead", "error": "nobody has it"}')""",
        """trunkline.search_jobs('{"created_before": "2020-01-01", "tenant": "nobody"}')""",
        """trunkline.search_jobs('{"finished_from": "2020-01-01", "queue": "nobody"}')""",
    ],
    "trunkline.usage_of_job": ["trunkline.usage_of_job(%(job)s)"],
    "trunkline.tenant_scope": ["trunkline.tenant_scope()"],
    "clinical.alive_workers": ["clinical.alive_workers()"],
    "clinical.list_dead_letters": ["clinical.list_dead_letters()"],
    "studio.failed_documents": ["studio.failed_documents(%(workflow)s)"],
    "studio.is_served": ["studio.is_served('text_generation')"],
    "studio.job_progress": ["studio.job_progress(%(workflow)s)"],
    "studio.pool_minimum": ["studio.pool_minimum(200, 0, null)"],
    "studio.public_tasks": ["studio.public_tasks(%(workflow)s)"],
    "studio.read_job": ["studio.read_job(%(workflow)s)"],
    "trunkline.worker_targets": ["trunkline.worker_targets()"],
}
_PARTS = "part of a view or of another function that is measured"
_IDENTITY = "reads the identity of the caller"
_BOUNDED = "reads one page of one workflow or job, or of artifacts, not the backlog"
NOT_FUNCTIONS: Final = {
    **dict.fromkeys(
        (
            *("trunkline.artifact", "trunkline.artifacts_to_check", "trunkline.job_steps"),
            *("trunkline.list_artifacts", "trunkline.live_workflows"),
            "trunkline.storage_installation",
            *("trunkline.workflow_jobs", "trunkline.workflow_results"),
        ),
        _BOUNDED,
    ),
    "clinical.as_uuid": _PARTS,
    "clinical.client_health": "runs another program",
    "clinical.configured": "one setting",
    "clinical.error_details": _PARTS,
    "clinical.has_profile_access": _IDENTITY,
    "clinical.is_service_role": _IDENTITY,
    "clinical.job_status": _PARTS,
    "clinical.open_to_clients": "reads only the catalogue",
    "clinical.stage_payload": _PARTS,
    "clinical.tag": _PARTS,
    "clinical.user_id": _IDENTITY,
    "executor.executor_last_error": _PARTS,
    "executor.executor_status": _PARTS,
    "executor.executor_time": _PARTS,
    "executor.executor_was_reclaimed": _PARTS,
    "studio.job_status": _PARTS,
    "studio.task_status": _PARTS,
}

# The same pages as commands.
FIRST_PAGES: Final = (
    "--tag stock",
    "--correlation-id stock_1000",
    "--finished-after 2d --finished-before 1d",
    "--created-after 2d --created-before 1d --state completed",
)

COMMANDS: Final = {
    "breakers list": [""],
    "dead groups": ["", "--task nobody"],
    "dead list": ["", "--task nobody", "--unacknowledged --queue nobody"],
    "dead show": ["%(dead)s"],
    "doctor": [""],
    "duties list": [""],
    "jobs count": ["", "--tag stock", "--task nobody"],
    "jobs explain": ["%(job)s"],
    "jobs list": [
        "",
        "--task nobody",
        "--state scheduled --queue stock_urgent",
        *FIRST_PAGES,
    ],
    "jobs show": ["%(job)s"],
    "jobs tail": ["--no-follow"],
    "limits list": [""],
    "limits show": ["stock", "stock/{k}"],
    "log": ["", "--actor nobody"],
    "profile check": ["clinical", "studio"],
    "profile status": ["clinical", "executor", "studio"],
    "profile steps": ["clinical cutover", "studio cutover"],
    "profile troubleshoot": ["executor"],
    "queues list": [""],
    "quotas list": [""],
    "quotas show": ["stock"],
    "quotas usage": [""],
    "schedules list": [""],
    "schedules next": ["stock"],
    "schema verify": [""],
    "settings get": ["lease"],
    "settings list": [""],
    "tasks list": [""],
    "tasks show": ["stock"],
    "scale": [""],
    "workers list": [""],
}
_CHANGES = "changes one job, task, limit or setting, and reads no more than that"
_MATCHES = "changes all jobs that match its filter; one batch of each is in BATCHES"
_SERVER = "starts, stops or checks server processes"
_RUNS = "runs jobs until it is stopped"
_FILES = "reads one page of artifacts, which do not grow with the backlog, or the store"
_FLOWS = "reads one workflow, or one page of them, whose jobs max_workflow_jobs bounds"
_INSTALLS = "installs, upgrades or removes"
NOT_COMMANDS: Final = {
    **dict.fromkeys(
        ("artifacts get", "artifacts link", "artifacts list", "artifacts show", "artifacts usage"),
        _FILES,
    ),
    **dict.fromkeys(
        ("store adopt", "store check", "store removals", "store rotate-secret"), _FILES
    ),
    **dict.fromkeys(("workflows graph", "workflows list", "workflows show"), _FLOWS),
    "api": "serves requests until it is stopped; what they read is in FUNCTIONS and VIEWS",
    "bench": _RUNS,
    "completion": "asks no server",
    "db backup": "reads everything: that is its purpose",
    "db dsn": _SERVER,
    "db psql": "runs the SQL that the user types",
    "db restore": "writes everything: that is its purpose",
    "db start": _SERVER,
    "db status": _SERVER,
    "db reset": _SERVER,
    "db stop": _SERVER,
    "dead discard": _MATCHES,
    "dead replay": _MATCHES,
    "demo": _RUNS,
    **dict.fromkeys(
        (
            *("dead acknowledge", "jobs cancel", "jobs discard", "jobs reprioritise"),
            "jobs retry",
        ),
        _MATCHES,
    ),
    "duties disable": _CHANGES,
    "duties enable": _CHANGES,
    "duties run": "bounded by tests/plans/test_plans.py",
    **dict.fromkeys(("keys create", "keys revoke"), _CHANGES),
    "keys list": "reads the service keys, which do not grow with the backlog",
    "profile demo": _RUNS,
    "profile install": _INSTALLS,
    "profile list": "asks no server",
    "profile rollback": _INSTALLS,
    "profile step": "makes the changes of its step",
    "profile take-over": "copies an older system's tables: that is its purpose",
    "profile validate": "enqueues and runs its own jobs",
    "profile wake": _RUNS,
    "schema install": _INSTALLS,
    "schema sql": "asks no server",
    "schema uninstall": _INSTALLS,
    "schema upgrade": _INSTALLS,
    "up": _RUNS,
    "worker": _RUNS,
    **dict.fromkeys(
        (
            *("breakers reset", "breakers set", "breakers trip", "dead edit"),
            *("jobs enqueue", "limits pause", "limits resume"),
            *("limits set", "queues age", "queues limit", "queues pause", "queues resume"),
            *("quotas set", "schedules pause", "schedules remove", "schedules resume"),
            *("schedules set", "settings reset", "settings set", "workers drain"),
            *("artifacts delete", "artifacts quota", "artifacts retention"),
            *("artifacts upload-link", "events send"),
            *("jobs reset-step", "workflows cancel", "workflows delete", "workflows rerun"),
            "workflows retry",
        ),
        _CHANGES,
    ),
}

SCHEMAS: Final = ["trunkline", "clinical", "executor", "studio"]
_VIEWS = """
select n.nspname || '.' || c.relname
from pg_class as c
join pg_namespace as n on n.oid = c.relnamespace
where c.relkind = 'v' and n.nspname = any(%s)
  and has_table_privilege('trunkline_operator', c.oid, 'select')
order by 1
"""
# Functions that change data are volatile, and so is the clock.
_FUNCTIONS = """
select distinct n.nspname || '.' || p.proname
from pg_proc as p
join pg_namespace as n on n.oid = p.pronamespace
where p.provolatile <> 'v' and n.nspname = any(%s)
  and has_function_privilege('trunkline_operator', p.oid, 'execute')
order by 1
"""


def names(connection: psycopg.Connection[Any]) -> tuple[list[str], list[str]]:
    """The views and the reading functions that an operator may use, from the catalogue."""
    views = [row[0] for row in connection.execute(_VIEWS, (SCHEMAS,))]
    return views, [row[0] for row in connection.execute(_FUNCTIONS, (SCHEMAS,))]


def queries(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """The first page of each view, and each call of a function."""
    views, _ = names(connection)
    queries = {
        name: f"{name} limit {_PAGES.get(name, 100)}" for name in views if name not in NOT_VIEWS
    }
    for calls in (*FUNCTIONS.values(), *VIEWS.values()):
        queries |= {call: call for call in calls}
    return queries


def commands() -> list[str]:
    """Each command that is measured, with its arguments."""
    return [f"{name} {more}".strip() for name, every in COMMANDS.items() for more in every]


def subjects(connection: psycopg.Connection[Any]) -> dict[str, UUID]:
    """A waiting job behind many others, a dead letter and a workflow."""
    row = connection.execute(
        "select (select job_id from trunkline.list_jobs('{ready}', 'stock', p_limit => 1)),"
        " (select job_id from trunkline.list_jobs('{dead}', p_limit => 1)),"
        " (select workflow_id from trunkline.workflows order by workflow_id desc limit 1)"
    ).fetchone()
    assert row is not None  # noqa: S101
    return {"job": row[0], "dead": row[1], "workflow": row[2]}
