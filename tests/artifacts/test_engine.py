"""The functions of the engine about artifacts, without a store."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.internals import storage
from tests.support.waiting import duel
from trunkline.db.call import Call
from trunkline.db.calls import artifacts as calls
from trunkline.db.calls import work
from trunkline.db.calls.steps import record_steps
from trunkline.db.connect import connect
from trunkline.db.runner import run
from trunkline.errors import (
    InvalidArtifact,
    StaleAttempt,
    StorageQuotaExceeded,
    UnknownArtifact,
)
from trunkline.model import Artifact, BegunArtifact, NewStep

_HASH = "0" * 64


class Engine:
    """Short calls for one worker."""

    def __init__(self, database: Database, stack: ExitStack) -> None:
        self.database = database
        self.connection = stack.enter_context(connect(database.dsn))
        self.superuser = database.superuser()
        self.jobs = Calls(self.superuser)
        self.jobs.register("work")

    def call(self, call: Call[Any]) -> Any:
        return run(self.connection, call)

    def claimed(self, worker: str = "w", **options: Any) -> tuple[UUID, int]:
        self.jobs.enqueue("work", **options)
        (job,) = self.call(work.claim(worker, None, 1, ["work"], None)).jobs
        return job.job_id, job.attempt

    def begin(
        self,
        job: tuple[UUID, int],
        name: str = "a.txt",
        *,
        worker: str = "w",
        kind: str | None = None,
        size: int | None = None,
        step: str | None = None,
    ) -> BegunArtifact:
        begun: BegunArtifact = self.call(
            calls.begin_artifact(
                worker, *job, name, kind=kind, content_type="text/plain", size=size, step=step
            )
        )
        return begun

    def stage(self, job: tuple[UUID, int], path: str, size: int = 5, *, worker: str = "w") -> UUID:
        staged: UUID = self.call(
            calls.stage_artifact(worker, *job, path, size=size, sha256=_HASH, duration=None)
        )
        return staged

    def add(self, job: tuple[UUID, int], name: str = "a.txt", size: int = 5, **more: Any) -> str:
        begun = self.begin(job, name, size=size, **more)
        self.stage(job, begun.path, size)
        return begun.path

    def complete(self, *jobs: tuple[UUID, int]) -> list[Any]:
        found: list[Any] = self.call(
            work.complete("w", [job for job, _ in jobs], [attempt for _, attempt in jobs])
        )
        return found

    def artifacts(self, job: UUID) -> list[Artifact]:
        found: list[Artifact] = self.call(
            calls.list_artifacts(
                job=job, workflow=None, kind=None, name=None, deleted=False, limit=100, after=None
            )
        )
        return found

    def removals(self) -> set[str]:
        rows = self.superuser.execute("select path from trunkline.file_removals").fetchall()
        return {path for (path,) in rows}


@pytest.fixture
def engine(database: Database) -> Iterator[Engine]:
    with ExitStack() as stack:
        yield Engine(database, stack)


def test_ta_26_publication_commits_with_the_completion(engine: Engine) -> None:
    """overview 6.9, TA-48, TA-71: the row is the publication; nothing is copied or renamed."""
    job = engine.claimed(tenant="acme", correlation_id="c")
    path = engine.add(job, "chapter1.mp3", kind="audio_mp3")
    assert engine.artifacts(job[0]) == []
    with engine.connection.transaction(force_rollback=True):
        engine.complete(job)
        assert len(engine.artifacts(job[0])) == 1
    assert engine.artifacts(job[0]) == []
    engine.complete(job)
    (artifact,) = engine.artifacts(job[0])
    assert artifact.storage_path == path
    assert path.startswith(f"t-acme/{job[0]}/audio/{job[0]}-1-")
    assert path.endswith("-chapter1.mp3")
    assert engine.complete(job)[0].verdict == "already"
    assert len(engine.artifacts(job[0])) == 1


def test_ta_27_a_lost_attempt_publishes_nothing(engine: Engine) -> None:
    """TA-50, TA-55, TA-56: a ghost can neither stage nor replace a file of the attempt after it."""
    first = engine.claimed()
    ghost = engine.begin(first, "a.txt")
    staged = engine.add(first, "b.txt")
    engine.call(work.release("w", [first[0]], [first[1]], "lost", unstarted=False))
    (again,) = engine.call(work.claim("w", None, 1, ["work"], None)).jobs
    second = (again.job_id, again.attempt)
    assert second == (first[0], first[1] + 1)
    for refused in (
        lambda: engine.stage(first, ghost.path),
        lambda: engine.begin(first, "c.txt"),
        lambda: engine.call(calls.reserve_storage("w", *first, ghost.artifact_id, 10)),
        lambda: engine.call(calls.abandon_artifact("w", *first, ghost.artifact_id)),
        lambda: engine.begin(second, worker="other"),
    ):
        with pytest.raises(StaleAttempt):
            refused()
    with pytest.raises(InvalidArtifact):
        engine.stage(second, ghost.path)
    path = engine.add(second, "a.txt")
    assert path not in {ghost.path, staged}
    engine.complete(second)
    assert [found.storage_path for found in engine.artifacts(first[0])] == [path]
    assert engine.removals() == {ghost.path, staged}


def test_the_files_of_an_ended_attempt_are_queued_by_the_duty(engine: Engine) -> None:
    job = engine.claimed()
    begun, path = engine.begin(job, "a.txt"), engine.add(job, "b.txt")
    storage.run_duty(engine.superuser)
    assert engine.removals() == set()
    engine.call(work.fail("w", [job[0]], [job[1]], errors=[None], retryable=[False], delays=[None]))
    storage.run_duty(engine.superuser)
    assert engine.removals() == {begun.path, path}
    # The upload may still be under way, so its file gets an hour.
    assert engine.call(calls.take_removals("w", 10)) == [path]
    assert engine.call(calls.take_removals("w", 10)) == []


def test_files_of_a_recorded_step_outlive_the_attempt(engine: Engine) -> None:
    """overview 6.9: a file of a recorded step belongs to the job, whatever attempt completes."""
    job = engine.claimed()
    kept = engine.add(job, "page.txt", step="render")
    engine.add(job, "draft.txt", step="draft")
    stale = NewStep(job[0], 2, 1, "draft", "#1", 1, "1")
    recorded = NewStep(job[0], 1, 1, "render", "#1", 1, "1")
    assert engine.call(record_steps("w", [stale])) == ["lost"]
    assert engine.call(record_steps("w", [recorded])) == ["ok"]
    engine.call(work.release("w", [job[0]], [job[1]], "lost", unstarted=False))
    storage.run_duty(engine.superuser)
    (again,) = engine.call(work.claim("w", None, 1, ["work"], None)).jobs
    engine.complete((again.job_id, again.attempt))
    assert [found.storage_path for found in engine.artifacts(job[0])] == [kept]
    assert [found.attempt for found in engine.artifacts(job[0])] == [1]


def test_a_repeated_stage_returns_the_same_artifact(engine: Engine) -> None:
    job = engine.claimed()
    begun = engine.begin(job)
    assert engine.stage(job, begun.path) == engine.stage(job, begun.path) == begun.artifact_id
    with pytest.raises(InvalidArtifact):
        engine.stage(job, begun.path, 6)


def test_ta_54_one_file_is_published_for_each_kind_and_name(engine: Engine) -> None:
    job = engine.claimed()
    old = engine.add(job, "a.json", kind="json")
    new = engine.add(job, "a.json", kind="json")
    other = engine.add(job, "a.json", kind="json_metadata")
    engine.complete(job)
    assert {found.storage_path for found in engine.artifacts(job[0])} == {new, other}
    assert engine.removals() == {old}


def test_plain_jobs_in_a_batch_with_uploads_are_completed_too(engine: Engine) -> None:
    """TA-69: artifacts of a job appear with its completion."""
    plain, uploading = engine.claimed(), engine.claimed()
    engine.add(uploading)
    assert engine.complete(plain, uploading) == []
    assert len(engine.artifacts(uploading[0])) == 1
    assert engine.artifacts(plain[0]) == []


def test_a_cancelled_attempt_publishes_nothing(engine: Engine) -> None:
    job = engine.claimed()
    path = engine.add(job)
    engine.superuser.execute("select trunkline.cancel(%s, 'no')", [job[0]])
    engine.call(work.heartbeat("w", [job[0]], [job[1]]))
    assert engine.complete(job)[0].verdict == "cancel"
    assert engine.artifacts(job[0]) == []
    storage.run_duty(engine.superuser)
    assert engine.removals() == {path}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("", None), ("a/b", None), ("a\\b", None), ("..", None), ("a\nb", None),
        ("a\u202eb", None), ("x" * 201, None), ("a", "Audio"), ("a", "../x"), ("a", ""),
    ],
)  # fmt: skip
def test_a_bad_name_or_kind_is_refused(engine: Engine, name: str, kind: str | None) -> None:
    job = engine.claimed()
    with pytest.raises(InvalidArtifact):
        engine.begin(job, name, kind=kind)


@pytest.mark.parametrize("tenant", ["../..", "a/b", ".hidden", "T", "t" * 300, "ü", "shared", "_"])
def test_every_tenant_has_its_own_folder(engine: Engine, tenant: str) -> None:
    path = engine.begin(engine.claimed(tenant=tenant)).path
    folder = path.partition("/")[0]
    assert folder.startswith("t-")
    assert len(folder) < 120
    assert path.count("/") == 3
    others = {
        engine.begin(engine.claimed(tenant=other)).path.partition("/")[0]
        for other in ("..-..", "a_b", "hidden", "t" * 299, "u", "x")
    }
    assert folder not in others


def test_ex_62_reservations_count_while_their_attempt_runs(engine: Engine) -> None:
    engine.call(calls.set_storage_quota("acme", 1000))
    job, other = engine.claimed(tenant="acme"), engine.claimed(tenant="acme")
    begun = engine.begin(job, "a.txt", size=600)
    assert begun.reserved_bytes == 600
    with pytest.raises(StorageQuotaExceeded) as refused:
        engine.begin(other, "b.txt", size=401)
    assert refused.value.detail["reserved_bytes"] == 600
    assert refused.value.detail["max_bytes"] == 1000
    engine.begin(other, "b.txt", size=400)
    with pytest.raises(StorageQuotaExceeded):
        engine.call(calls.reserve_storage("w", *job, begun.artifact_id, 601))
    failed = work.fail("w", [other[0]], [other[1]], errors=[None], retryable=[False], delays=[None])
    engine.call(failed)
    assert engine.call(calls.reserve_storage("w", *job, begun.artifact_id, 1000)) == 1000
    # The actual size counts from here on.
    engine.stage(job, begun.path, 700)
    engine.complete(job)
    (status,) = [row for row in engine.call(calls.storage()) if row.tenant == "acme"]
    assert (status.used_bytes, status.files, status.reserved_bytes) == (700, 1, 0)
    third = engine.claimed(tenant="acme")
    with pytest.raises(StorageQuotaExceeded):
        engine.begin(third, "c.txt", size=301)
    unknown_size = engine.begin(engine.claimed(tenant="other"), "c.txt")
    assert unknown_size.reserved_bytes is None


def test_two_uploads_never_get_the_same_last_bytes(engine: Engine) -> None:
    engine.call(calls.set_storage_quota("acme", 1000))
    jobs = [engine.claimed(tenant="acme") for _ in range(2)]

    def begin(job: tuple[UUID, int]) -> bool:
        with connect(engine.database.dsn) as connection:
            try:
                run(
                    connection,
                    calls.begin_artifact(
                        "w", *job, "a", kind=None, content_type="text/plain", size=600, step=None
                    ),
                )
            except StorageQuotaExceeded:
                return False
            return True

    with ThreadPoolExecutor() as pool:
        outcomes = duel(pool, lambda: begin(jobs[0]), lambda: begin(jobs[1]))
    assert set(outcomes) == {False, True}


def test_ex_89_deleting_frees_the_bytes_in_the_same_step(engine: Engine) -> None:
    """EX-60: the row stays as a tombstone."""
    engine.call(calls.set_storage_quota("acme", 1000))
    job = engine.claimed(tenant="acme")
    path = engine.add(job, size=1000)
    engine.complete(job)
    (artifact,) = engine.artifacts(job[0])
    assert engine.call(calls.delete_artifact(artifact.id, "not wanted"))
    assert not engine.call(calls.delete_artifact(artifact.id, None))
    engine.begin(engine.claimed(tenant="acme"), size=1000)
    tombstone = engine.call(calls.artifact(artifact.id))
    assert (tombstone.delete_reason, tombstone.deleted_at is not None) == ("not wanted", True)
    assert engine.call(calls.take_removals("w", 10)) == [path]
    assert engine.call(calls.report_removals("w", [path], [None])) == 1
    storage.age_tombstones(engine.superuser, "29 days")
    storage.run_duty(engine.superuser)
    assert engine.call(calls.artifact(artifact.id))
    storage.age_tombstones(engine.superuser, "31 days")
    storage.run_duty(engine.superuser)
    with pytest.raises(UnknownArtifact):
        engine.call(calls.artifact(artifact.id))


def test_artifacts_expire_by_the_retention_of_their_kind(engine: Engine) -> None:
    engine.call(calls.set_artifact_retention("json", 3600))
    job = engine.claimed()
    engine.add(job, "a.json")
    engine.add(job, "b.txt")
    engine.complete(job)
    ages = {found.name: found.expires_at - found.published_at for found in engine.artifacts(job[0])}  # type: ignore[operator]
    assert ages["a.json"].total_seconds() == 3600
    assert ages["b.txt"].days == 30
    storage.expire(engine.superuser, "json")
    storage.run_duty(engine.superuser)
    assert [found.name for found in engine.artifacts(job[0])] == ["b.txt"]


def test_a_file_that_cannot_be_deleted_is_tried_again_later(engine: Engine) -> None:
    job = engine.claimed()
    path = engine.begin(job).path
    storage.queue_removal(engine.superuser, path + "x")
    assert engine.call(calls.take_removals("w", 10)) == [path + "x"]
    assert engine.call(calls.report_removals("w", [path + "x"], ["denied"])) == 0
    (removal,) = engine.call(calls.file_removals(10))
    assert (removal.tries, removal.last_error) == (1, "denied")
    assert (removal.due_at - removal.queued_at).total_seconds() > 60


def test_a_live_file_is_never_handed_out_for_removal(engine: Engine) -> None:
    job = engine.claimed()
    path = engine.add(job)
    engine.complete(job)
    storage.queue_removal(engine.superuser, path)
    assert engine.call(calls.take_removals("w", 10)) == []


def test_changes_of_storage_are_added_up(engine: Engine) -> None:
    for number in range(15):
        job = engine.claimed(tenant="acme")
        engine.add(job, size=number)
        engine.complete(job)
    before = engine.call(calls.storage())
    storage.run_duty(engine.superuser)
    assert engine.call(calls.storage()) == before
    assert storage.usage_rows(engine.superuser) == 1
    assert (before[0].used_bytes, before[0].files) == (105, 15)


def test_ta_13_deleting_a_workflow_removes_its_artifacts_and_queues_the_files(
    engine: Engine,
) -> None:
    steps = [{"name": "one", "task": "work"}]
    workflow = engine.jobs.value(
        "select workflow_id from trunkline.start_workflow(%s)",
        Jsonb({"name": "report", "steps": steps}),
    )
    (claimed,) = engine.call(work.claim("w", None, 1, ["work"], None)).jobs
    job = (claimed.job_id, claimed.attempt)
    path, other = engine.add(job), engine.add(engine.claimed())
    engine.complete(job)
    engine.jobs.value("select trunkline.delete_workflow(%s)", workflow)
    assert engine.removals() == {path} != {other}
    assert engine.artifacts(job[0]) == []


def test_ta_51_a_tenant_sees_only_its_own_artifacts(engine: Engine) -> None:
    own, foreign = engine.claimed(tenant="acme"), engine.claimed(tenant="other")
    for job in (own, foreign):
        engine.add(job)
    engine.complete(own, foreign)
    (theirs,) = engine.artifacts(foreign[0])
    (ours,) = engine.artifacts(own[0])
    producer = engine.database.connect("trunkline_producer")
    producer.execute("select set_config('trunkline.tenant', 'acme', false)")
    found = producer.execute("select artifact_id from trunkline.list_artifacts()").fetchall()
    assert found == [(ours.id,)]
    assert producer.execute("select tenant from trunkline.artifacts").fetchall() == [("acme",)]
    assert producer.execute("select tenant from trunkline.storage").fetchall() == [("acme",)]
    for name in ("artifact(%s)", "delete_artifact(%s)"):
        with pytest.raises(psycopg.Error) as refused:
            producer.execute(f"select trunkline.{name}".encode(), [theirs.id])
        assert refused.value.sqlstate == "TL056"
    for statement in (
        "select trunkline.set_storage_quota('acme', 1)",
        "select trunkline.take_removals('w')",
        "select * from trunkline.file_removals",
        "select trunkline.begin_artifact('w', gen_random_uuid(), 1, 'a')",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            producer.execute(statement.encode())
    narrowed = engine.database.connect("trunkline_worker")
    narrowed.execute("select set_config('trunkline.tenant', 'acme', false)")
    assert narrowed.execute("select trunkline.take_removals('w')").fetchall() == []
    assert narrowed.execute("select * from trunkline.take_sweep('w')").fetchall() == []


def test_one_worker_at_a_time_sweeps(engine: Engine) -> None:
    assert engine.call(calls.take_sweep("a")) is not None
    assert engine.call(calls.take_sweep("b")) is None
    assert engine.call(calls.report_files("b", ["x/y"], None)) == 0
    assert engine.call(calls.report_files("a", ["x/y"], "x/y")) == 1
    turn = engine.call(calls.take_sweep("a"))
    assert turn.file_cursor == "x/y"
    storage.end_lease(engine.superuser)
    assert engine.call(calls.take_sweep("b")).file_cursor == "x/y"
    engine.call(calls.report_checked("b", None, [], []))
    assert engine.call(calls.take_sweep("b")) is None


def test_an_unknown_artifact_is_refused(engine: Engine) -> None:
    job = engine.claimed()
    with pytest.raises(UnknownArtifact):
        engine.call(calls.artifact(uuid4()))
    with pytest.raises(UnknownArtifact):
        engine.call(calls.delete_artifact(uuid4(), None))
    with pytest.raises(UnknownArtifact):
        engine.call(calls.reserve_storage("w", *job, uuid4(), 10))
    assert not engine.call(calls.abandon_artifact("w", *job, uuid4()))
