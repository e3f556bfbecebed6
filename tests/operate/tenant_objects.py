"""Objects of tenant b, one for each kind of verb, arranged with public functions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from psycopg.types.json import Jsonb

from tests.operate.conftest import Scene
from tests.support.calls import Attempt, Calls
from trunkline.artifacts import LocalStore
from trunkline.artifacts.results import KIND, NAME

__all__ = ["CONTENT", "TRACES", "Objects", "arrange", "state"]

CONTENT: Final = "of b"
# An answer about an object of tenant b contains one of these, also the path of its file.
TRACES: Final = ("'b'", CONTENT, "t-b/")

_STEPS: Final = (
    "select j.job_id, s.name, s.state from trunkline.jobs as j"
    " cross join lateral trunkline.job_steps(j.job_id) as s where j.tenant = 'b' order by 1, 2"
)


@dataclass(frozen=True, slots=True)
class Objects:
    """Ids of jobs, workflows and artifacts of tenant b."""

    waiting: str
    dead: str
    # Suspended until the event `go`, with the recorded step `read`.
    suspended: str
    # The group of the error of `dead`.
    group: str
    live_workflow: str
    failed_workflow: str
    # A job that has completed, with a file and a large result.
    uploader: UUID
    file: UUID
    result: UUID
    # A running job, and the artifact that its attempt has begun.
    uploading: UUID
    begun: UUID


def arrange(scene: Scene, store: LocalStore) -> Objects:
    """Leave objects of tenant b in a database, and two artifacts in a store."""
    calls = scene.calls
    calls.connection.execute(
        "select trunkline.register_tasks(%s)",
        ('[{"task": "paid", "declares": {"api": {"concurrency": 1, "breaker_failures": 3}}}]',),
    )
    calls.connection.execute("select trunkline.register_worker('w1')")
    scene.operator.schedules.set("of b", "@daily", "work", tenant="b")
    waiting = calls.enqueue(tenant="b", queue="of b").job_id
    [dead] = scene.bury(1, tenant="b")
    [group] = scene.operator.dead.groups()
    # Bulk verbs change the jobs of the task `work`. Jobs of `part` are left to single verbs.
    calls.register("part", max_attempts=1)
    failed_workflow = _workflow(calls)
    scene.fail([_start(calls).job], "boom")
    uploader = _enqueue(calls)
    attempt = _start(calls)
    for name, kind in (("of b.txt", "txt"), ("old.txt", "txt"), (NAME, KIND)):
        _upload(calls, store, attempt, name, kind)
    calls.batch("complete", "w", [attempt])
    artifacts = {found.name: found.id for found in scene.operator.artifacts.list(job=uploader)}
    # Its file waits to be removed from the store.
    scene.operator.artifacts.delete(artifacts["old.txt"])
    suspended = _enqueue(calls)
    _suspend(calls, _start(calls))
    uploading = _enqueue(calls)
    begun = calls.value(
        "select artifact_id from trunkline.begin_artifact('w', %s, %s, 'begun.txt')",
        uploading,
        _start(calls).number,
    )
    return Objects(
        waiting=str(waiting),
        dead=str(dead),
        suspended=str(suspended),
        group=group.error_group,
        live_workflow=_workflow(calls),
        failed_workflow=failed_workflow,
        uploader=uploader,
        file=artifacts["of b.txt"],
        result=artifacts[NAME],
        uploading=uploading,
        begun=begun,
    )


def state(scene: Scene) -> list[Any]:
    """Return everything of tenant b that a verb could change."""
    queries = (
        "select job_id, state, priority from trunkline.jobs where tenant = 'b' order by 1",
        "select schedule, cron, paused from trunkline.schedules order by 1",
        "select count(*) from trunkline.operator_log where tenant is distinct from 'a'",
        "select workflow_id, state, generation, reason from trunkline.workflows order by 1",
        "select artifact_id, deleted_at from trunkline.artifacts order by 1",
        "select tenant, used_bytes, max_bytes from trunkline.storage order by 1",
        "select kind, retention from trunkline.artifact_kinds order by 1",
        _STEPS,
    )
    return [scene.calls.connection.execute(query).fetchall() for query in queries]


def _enqueue(calls: Calls) -> UUID:
    job: UUID = calls.enqueue("part", tenant="b").job_id
    return job


def _workflow(calls: Calls) -> str:
    graph = {"name": "of b", "tenant": "b", "steps": [{"name": "first", "task": "part"}]}
    workflow: UUID = calls.value(
        "select workflow_id from trunkline.start_workflow(%s)", Jsonb(graph)
    )
    return str(workflow)


def _start(calls: Calls) -> Attempt:
    [attempt] = calls.claim("w", tasks=["part"]).attempts
    return attempt


def _upload(calls: Calls, store: LocalStore, attempt: Attempt, name: str, kind: str) -> None:
    place = (attempt.worker, attempt.job, attempt.number)
    path = calls.value(
        "select path from trunkline.begin_artifact(%s, %s, %s, %s, %s)", *place, name, kind
    )
    written = store.put(path, [json.dumps(CONTENT).encode()])
    calls.value(
        "select trunkline.stage_artifact(%s, %s, %s, %s, %s, %s)",
        *place,
        path,
        written.bytes,
        written.sha256,
    )


def _suspend(calls: Calls, attempt: Attempt) -> None:
    """Record a step of an attempt, then let its job wait for an event."""
    calls.value(
        "select trunkline.record_steps('w', %s, %s, '{1}', '{read}', '{#1}', '{null}', '{1}')",
        [attempt.job],
        [attempt.number],
    )
    calls.value(
        "select trunkline.begin_wait('w', %s, %s, 2, 'event', 'go', '#1')",
        attempt.job,
        attempt.number,
    )
    [verdict] = calls.batch("suspend", "w", [attempt])
    assert verdict.state == "blocked"
