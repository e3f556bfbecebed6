"""What operators read: every view, every function that only reads, every command.

A view, function or command that is in none of these lists makes `tests/plans` fail.
"""

from typing import Any, Final
from uuid import UUID

import psycopg

__all__ = [
    "COMMANDS",
    "FUNCTIONS",
    "NOT_COMMANDS",
    "NOT_FUNCTIONS",
    "NOT_VIEWS",
    "commands",
    "names",
    "queries",
    "subjects",
]

NOT_VIEWS: Final = {
    "clinical.configuration_keys": "a list written in the view itself",
    "clinical.rollout_steps": "a list written in the view itself",
}

# Calls by what they show; %(job)s is a waiting job.
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
    "trunkline.health": ["trunkline.health()"],
    "trunkline.job": ["trunkline.job(%(job)s)"],
    "trunkline.list_jobs": ["trunkline.list_jobs()", "trunkline.list_jobs('{completed}')"],
    "trunkline.next_due": ["trunkline.next_due('@daily')"],
    "trunkline.queue_sizes": ["trunkline.queue_sizes()"],
    "trunkline.recent_activity": [
        "trunkline.recent_activity(now() - interval '1 hour')",
        "trunkline.recent_activity(now() - interval '1 hour', p_task => 'nobody knows it')",
    ],
    "trunkline.schema_release": ["trunkline.schema_release()"],
    "trunkline.schema_version": ["trunkline.schema_version()"],
    "trunkline.search_jobs": [
        "trunkline.search_jobs()",
        """trunkline.search_jobs('{"task": "nobody knows it"}')""",
        """trunkline.search_jobs('{"tag": "stock"}')""",
        """trunkline.search_jobs('{"tag": "stock", "error": "nobody has it"}')""",
        """trunkline.search_jobs('{"correlation_id": "nobody"}')""",
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
}
_PARTS = "a part of a view or of another function that is measured"
_IDENTITY = "who asks"
NOT_FUNCTIONS: Final = {
    "clinical.as_uuid": _PARTS,
    "clinical.client_health": "asks another program",
    "clinical.configured": "one setting",
    "clinical.error_details": _PARTS,
    "clinical.has_profile_access": _IDENTITY,
    "clinical.is_service_role": _IDENTITY,
    "clinical.job_status": _PARTS,
    "clinical.open_to_clients": "reads the catalogue alone",
    "clinical.tag": _PARTS,
    "clinical.user_id": _IDENTITY,
    "executor.executor_last_error": _PARTS,
    "executor.executor_status": _PARTS,
    "executor.executor_time": _PARTS,
    "executor.executor_was_reclaimed": _PARTS,
}

COMMANDS: Final = {
    "breakers list": [""],
    "dead list": ["", "--task nobody", "--unacknowledged --queue nobody"],
    "dead show": ["%(dead)s"],
    "doctor": [""],
    "duties list": [""],
    "jobs explain": ["%(job)s"],
    "jobs list": ["", "--task nobody", "--state scheduled --queue stock_urgent"],
    "jobs show": ["%(job)s"],
    "jobs tail": ["--no-follow"],
    "limits list": [""],
    "limits show": ["stock", "stock/{k}"],
    "profile check": ["clinical"],
    "profile status": ["clinical", "executor"],
    "profile steps": ["clinical cutover"],
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
    "workers list": [""],
}
_CHANGES = "changes one job, task, limit or setting, and reads no more than that"
_SERVER = "starts, stops or looks at server processes"
_RUNS = "runs jobs until it is stopped"
_INSTALLS = "installs, upgrades or removes"
NOT_COMMANDS: Final = {
    "bench": _RUNS,
    "completion": "asks no server",
    "db backup": "reads everything: that is its purpose",
    "db dsn": _SERVER,
    "db psql": "whatever is typed",
    "db restore": "writes everything: that is its purpose",
    "db start": _SERVER,
    "db status": _SERVER,
    "db reset": _SERVER,
    "db stop": _SERVER,
    "dead discard": "all that fit its filter: that is its purpose",
    "dead replay": "all that fit its filter: that is its purpose",
    "demo": _RUNS,
    "duties disable": _CHANGES,
    "duties enable": _CHANGES,
    "duties run": "bounded by tests/plans/test_plans.py",
    "profile demo": _RUNS,
    "profile install": _INSTALLS,
    "profile list": "asks no server",
    "profile rollback": _INSTALLS,
    "profile step": "changes what the step is for",
    "profile take-over": "copies an older system's tables: that is its purpose",
    "profile validate": "enqueues and runs jobs of its own",
    "profile wake": _RUNS,
    "schema install": _INSTALLS,
    "schema sql": "asks no server",
    "schema uninstall": _INSTALLS,
    "schema upgrade": _INSTALLS,
    "up": _RUNS,
    "worker": _RUNS,
    **dict.fromkeys(
        (
            *("breakers reset", "breakers set", "breakers trip", "dead acknowledge"),
            *("jobs cancel", "jobs enqueue", "jobs retry", "limits pause", "limits resume"),
            *("limits set", "queues age", "queues limit", "queues pause", "queues resume"),
            *("quotas set", "schedules pause", "schedules remove", "schedules resume"),
            *("schedules set", "settings reset", "settings set", "workers drain"),
        ),
        _CHANGES,
    ),
}

_VIEWS = """
select n.nspname || '.' || c.relname
from pg_class as c
join pg_namespace as n on n.oid = c.relnamespace
where c.relkind = 'v' and n.nspname in ('trunkline', 'clinical', 'executor')
  and has_table_privilege('trunkline_operator', c.oid, 'select')
order by 1
"""
# Functions that change something are volatile, and so is the clock.
_FUNCTIONS = """
select distinct n.nspname || '.' || p.proname
from pg_proc as p
join pg_namespace as n on n.oid = p.pronamespace
where p.provolatile <> 'v' and n.nspname in ('trunkline', 'clinical', 'executor')
  and has_function_privilege('trunkline_operator', p.oid, 'execute')
order by 1
"""


def names(connection: psycopg.Connection[Any]) -> tuple[list[str], list[str]]:
    """The views and the reading functions that an operator may use, from the catalogue."""
    views = [row[0] for row in connection.execute(_VIEWS)]
    return views, [row[0] for row in connection.execute(_FUNCTIONS)]


def queries(connection: psycopg.Connection[Any]) -> dict[str, str]:
    """The first page of each view, and each call of a function."""
    views, _ = names(connection)
    found = {name: f"{name} limit 100" for name in views if name not in NOT_VIEWS}
    for calls in FUNCTIONS.values():
        found |= {call: call for call in calls}
    return found


def commands() -> list[str]:
    """Each command that is measured, with its arguments."""
    return [f"{name} {more}".strip() for name, every in COMMANDS.items() for more in every]


def subjects(connection: psycopg.Connection[Any]) -> dict[str, UUID]:
    """A waiting job behind many others, and a dead letter."""
    row = connection.execute(
        "select (select job_id from trunkline.list_jobs('{ready}', 'stock', p_limit => 1)),"
        " (select job_id from trunkline.list_jobs('{dead}', p_limit => 1))"
    ).fetchone()
    assert row is not None  # noqa: S101
    return {"job": row[0], "dead": row[1]}
