"""Every function that an operator may call, and that changes something, leaves a line in the log.

The list of functions comes from the catalogue, so that a new one cannot be missed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import psycopg

from tests.operate.conftest import Scene
from tests.operate.tenant_objects import arrange
from trunkline.artifacts import LocalStore

_PRODUCES: Final = "adds jobs, which record themselves when they were enqueued and by whom"
_DECLARES: Final = "stores what the code declares, at each start of a program"
_CALLS: Final = "is a provider call, which the usage ledger has"
_SWEEPS: Final = "removes files that were logged when they were deleted, or have expired"
_DUTY: Final = "is a duty, which workers run and trunkline.duties records"
_READS: Final = "reads; it is volatile because it locks rows or reads the clock"
# Functions without a line, each with the reason.
UNLOGGED: Final = {
    **dict.fromkeys(("enqueue", "enqueue_batch", "enqueue_many", "start_workflow"), _PRODUCES),
    **dict.fromkeys(("register_task", "register_tasks"), _DECLARES),
    **dict.fromkeys(("acquire", "settle"), _CALLS),
    **dict.fromkeys(
        ("report_checked", "report_files", "report_removals", "take_removals", "take_sweep"),
        _SWEEPS,
    ),
    **dict.fromkeys(
        (
            *("maintain_partitions", "promote", "reclaim", "run_duties", "run_duty"),
            *("run_schedules", "sweep_artifacts", "sweep_buckets", "sweep_idempotency"),
        ),
        _DUTY,
    ),
    "use_service_key": "reads a key for a request, and notes once a minute that it was used",
    "follow": "asks to be notified of changes for three minutes",
    "after_restore": "translates transaction ids after a restore; nobody decides anything",
    **dict.fromkeys(("clock", "workflow_progress"), _READS),
}

# Statements by function: the last one leaves the line, those before it prepare it.
CALLS: Final[Mapping[str, tuple[str, ...]]] = {
    "acknowledge": ("acknowledge(%(dead)s)",),
    "acknowledge_jobs": ("""acknowledge_jobs('{"tenant": "b"}')""",),
    "adopt_schedule": ("set_schedule('old', '@daily', 'work')", "adopt_schedule('work', 'old')"),
    "age_queue": ("age_queue('q')",),
    "cancel": ("cancel(%(waiting)s)",),
    "cancel_jobs": ("""cancel_jobs('{"tenant": "b"}')""",),
    "cancel_workflow": ("cancel_workflow(%(live_workflow)s)",),
    "create_service_key": (
        "create_service_key('abcdefghij12', repeat('0', 64), 'shop', 'reader')",
    ),
    "delete_artifact": ("delete_artifact(%(file)s)",),
    "delete_workflow": (
        "cancel_workflow(%(live_workflow)s)",
        "delete_workflow(%(live_workflow)s)",
    ),
    "discard": ("discard(%(dead)s)",),
    "discard_jobs": ("""discard_jobs('{"tenant": "b", "state": "dead"}')""",),
    "drain_worker": ("drain_worker('w1')",),
    "enable_duty": ("enable_duty('promote', false)",),
    "limit_queue": ("limit_queue('q', 10)",),
    "observe_limit": (
        """observe_limit('api', '{"retry_after": 60}')""",
        """observe_limit('api', '{"retry_after": 0}')""",
    ),
    "pause_queue": ("pause_queue('q')",),
    "pause_schedule": ("pause_schedule('of b')",),
    "remove_schedule": ("remove_schedule('of b')",),
    "reprioritise": ("reprioritise(%(waiting)s, 3)",),
    "reprioritise_jobs": ("""reprioritise_jobs('{"tenant": "b"}', 3)""",),
    "rerun_workflow": ("rerun_workflow(%(failed_workflow)s)",),
    "reset_breaker": ("trip_breaker('api')", "reset_breaker('api')"),
    "reset_step": ("reset_step(%(suspended)s, 'read')",),
    "resume_queue": ("pause_queue('q')", "resume_queue('q')"),
    "resume_schedule": ("pause_schedule('of b')", "resume_schedule('of b')"),
    "retry": ("retry(%(dead)s)",),
    "retry_edited": ("""retry_edited(%(dead)s, '{"n": 1}')""",),
    "retry_fresh": ("retry_fresh(%(dead)s)",),
    "retry_jobs": ("""retry_jobs('{"tenant": "b", "state": "dead"}')""",),
    "retry_workflow": ("retry_workflow(%(failed_workflow)s)",),
    "revoke_service_key": (
        "create_service_key('abcdefghij12', repeat('0', 64), 'shop', 'reader')",
        "revoke_service_key('abcdefghij12')",
    ),
    "send_event": ("send_event('go', p_job => %(suspended)s)",),
    "set_artifact_retention": ("set_artifact_retention('txt', '1 day')",),
    "set_limit": ("""set_limit('new', '{"concurrency": 1}')""",),
    "set_schedule": ("set_schedule('s', '@daily', 'work')",),
    "set_setting": ("set_setting('lease', '10 minutes')",),
    "set_storage_quota": ("set_storage_quota('b', 1000000)",),
    "trip_breaker": ("trip_breaker('api')",),
}
# Members of trunkline_owner alone may call these: see test_log.py.
_OF_OWNERS: Final = {"add_duty", "remove_duty"}

_FUNCTIONS: Final = """
select distinct p.proname
from pg_proc as p
where p.pronamespace = 'trunkline'::regnamespace
  and p.provolatile = 'v'
  and has_function_privilege('trunkline_operator', p.oid, 'execute')
"""


def test_every_function_that_an_operator_may_call_is_listed(scene: Scene) -> None:
    functions = {name for (name,) in scene.calls.connection.execute(_FUNCTIONS)}
    assert functions == {*CALLS, *UNLOGGED}
    assert not {*CALLS} & {*UNLOGGED}
    assert not functions & _OF_OWNERS


def test_every_change_leaves_a_line_with_before_and_after(scene: Scene, tmp_path: Path) -> None:
    subjects = asdict(arrange(scene, LocalStore(tmp_path / "files")))
    session = scene.database.connect("trunkline_operator")
    session.execute("select set_config('trunkline.actor', 'ann', false)")
    session.execute("select set_config('trunkline.reason', 'incident 7', false)")
    for name, statements in CALLS.items():
        with session.transaction(force_rollback=True):
            for statement in statements[:-1]:
                _run(session, statement, subjects)
            [last] = session.execute("select coalesce(max(log_id), 0) from trunkline.operator_log")
            _run(session, statements[-1], subjects)
            lines = session.execute(
                "select action, actor, reason, before, after from trunkline.operator_log"
                " where log_id > %s",
                last,
            ).fetchall()
        assert {line[1:3] for line in lines} == {("ann", "incident 7")}, name
        states = {action: (before, after) for action, _, _, before, after in lines}
        assert name in states, name
        before, after = states[name]
        assert before != after, name


def _run(session: psycopg.Connection[Any], call: str, subjects: dict[str, Any]) -> None:
    session.execute(f"select * from trunkline.{call}".encode(), subjects)
