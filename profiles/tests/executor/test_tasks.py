"""The tasks on real workers: end to end, killed on the way, and cut off from their services."""

import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from profiles.tests.executor.conftest import TYPES, Desk
from tests.support.waiting import until
from trunkline import Trunkline
from trunkline.errors import ProfileError
from trunkline_profiles.executor import tasks
from trunkline_profiles.executor.handlers import artifact, evidence
from trunkline_profiles.executor.handlers.http import Service
from trunkline_profiles.executor.handlers.store import Store
from trunkline_profiles.executor.stubs.authority import StubAuthority
from trunkline_profiles.executor.stubs.chain import StubChain

PROGRAM = """
import sys
from trunkline.worker import WorkerOptions, run_worker
queues = tuple(sys.argv[1].split(","))
path = "trunkline_profiles.executor.app:app"
sys.exit(run_worker(WorkerOptions(app_path=path, queues=queues, log_level="warning")))
"""
_T = TypeVar("_T")

SLOW = ("run_tsa", "submit_anchor_polygon", "submit_anchor_bitcoin")


class Scene:
    """The database, the stand-ins, the folders and the workers of one test."""

    def __init__(self, desk: Desk, folder: Path) -> None:
        self.desk = desk
        self.folder = folder
        self.inbox = folder / "inbox"
        self.inbox.mkdir()
        self.store = Store(folder / "store")
        self.authority = StubAuthority()
        self.chain = StubChain()
        self.workers: list[subprocess.Popen[bytes]] = []
        (folder / "authority.pem").write_bytes(
            self.authority.certificate.public_bytes(Encoding.PEM)
        )

    def work(self, *queues: str) -> subprocess.Popen[bytes]:
        """Start a worker process on these queues."""
        environment = os.environ | {
            "TRUNKLINE_DSN": self.desk.database.dsn,
            "TRUNKLINE_EXECUTOR_INBOX": str(self.inbox),
            "TRUNKLINE_EXECUTOR_STORE": str(self.store.root),
            "TRUNKLINE_EXECUTOR_TSA": self.authority.url,
            "TRUNKLINE_EXECUTOR_TSA_CERTIFICATE": str(self.folder / "authority.pem"),
            "TRUNKLINE_EXECUTOR_CHAIN": self.chain.url,
            "TRUNKLINE_EXECUTOR_LOOK_EVERY": "0.05",
        }
        chosen = ",".join(queues or (tasks.ORCHESTRATOR, tasks.DECISIONS))
        worker = subprocess.Popen([sys.executable, "-c", PROGRAM, chosen], env=environment)
        self.workers.append(worker)
        return worker

    def protect(self, document: str, **payload: Any) -> UUID:
        given = payload or {"content": base64.b64encode(document.encode()).decode()}
        found: UUID = self.desk.producer.value(
            "select executor.enqueue_job('protect_document_v2', %s::jsonb, %s)",
            json.dumps({"document": document, **given}),
            document,
        )
        return found

    def running(self, kind: str) -> Any:
        """The job of that type that runs now, or None."""
        query = "select * from executor.executor_jobs where status = 'running' and type = %s"
        found = self.desk.rows(query, kind)
        return found[0] if found else None

    def proof(self, document: str) -> bytes | None:
        return self.store.get(document, evidence.BUNDLE)

    def wait(self, condition: Callable[[], _T], what: str) -> _T:
        """Look until it holds; a worker that ended by itself will not bring it about."""

        def look() -> _T:
            ended = [worker.poll() for worker in self.workers]
            # Killed by a signal of the test is no surprise.
            assert all(code is None or code < 0 for code in ended), f"a worker ended: {ended}"
            return condition()

        return until(look, what)

    def quiet(self) -> bool:
        query = "select count(*) from executor.executor_jobs where status in ('queued', 'running')"
        return bool(self.desk.rows(query) == [(0,)])

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
        for server in (self.authority, self.chain):
            server.close()
        for worker in self.workers:
            worker.wait()


@pytest.fixture
def scene(desk: Desk, tmp_path: Path) -> Iterator[Scene]:
    made = Scene(desk, tmp_path)
    yield made
    made.close()


def test_rc_63_two_kinds_of_workers_make_a_proof(scene: Scene) -> None:
    """RC-63, RC-33, RC-20: one serves the long types, the other decides; one effect each."""
    scene.work(tasks.ORCHESTRATOR)
    scene.work(tasks.DECISIONS)
    (scene.inbox / "contract.txt").write_bytes(b"signed")
    scene.protect("doc-1", path="contract.txt")
    scene.wait(lambda: scene.proof("doc-1") and scene.quiet(), "the proof of doc-1")
    parts = artifact.contents(scene.proof("doc-1") or b"")
    assert set(parts) == {*evidence.PARTS, "manifest.json"}
    rows = scene.desk.rows(
        "select type, count(*) as jobs, min(status) as status from executor.executor_jobs"
        " group by type"
    )
    assert {row.type for row in rows} == {*TYPES, "decide_next_step"}
    assert {row.status for row in rows} == {"succeeded"}
    assert {row.jobs for row in rows if row.type in SLOW} == {1}
    assert len(scene.authority.ledger.keys()) == 1
    assert [len(scene.chain.ledger(chain).keys()) for chain in evidence.CHAINS] == [1, 1]
    took = scene.desk.rows(
        "select max(finished_at - claimed_at) from trunkline.jobs where task = 'decide_next_step'"
    )
    assert took[0][0].total_seconds() < 1


def test_rc_s06_a_killed_worker_leaves_one_effect(scene: Scene) -> None:
    """RC-S06, RC-20, RC-49: killed after the stamp was made and before its answer arrived."""
    desk = scene.desk
    scene.authority.hold.clear()
    doomed = scene.work()
    scene.protect("doc-1")
    scene.wait(scene.authority.ledger.keys, "the stamp was made")
    lost = scene.running("run_tsa")
    doomed.send_signal(signal.SIGKILL)
    doomed.wait()
    scene.authority.hold.set()
    desk.pass_time("31 minutes")
    assert lost.id in {row.id for row in desk.reclaim()}
    # Anchors it may have held have an hour.
    desk.pass_time("31 minutes")
    desk.reclaim()
    desk.pass_time("2 minutes")
    scene.work()
    scene.wait(lambda: scene.proof("doc-1") and scene.quiet(), "the proof of doc-1")
    assert desk.row(lost.id).status == "succeeded"
    assert scene.authority.ledger.keys() == ["run_tsa:doc-1"]
    assert scene.authority.ledger.refused == []
    assert "RECLAIMED_TTL" in desk.row(lost.id).last_error


def test_rc_s10_claimable_after_the_ttl_and_never_before(scene: Scene) -> None:
    """RC-S10, RC-27: kill -9 on a five-minute job; its worker's death is known long before."""
    desk = scene.desk
    # A document that never ends: nobody writes into the pipe.
    os.mkfifo(scene.inbox / "endless")
    doomed = scene.work()
    job = scene.protect("doc-1", path="endless")
    row = scene.wait(lambda: scene.running("protect_document_v2"), "the job runs")
    doomed.send_signal(signal.SIGKILL)
    doomed.wait()
    row = desk.row(job)
    alive = max(row.locked_at, row.heartbeat_at or row.locked_at)

    def since() -> float:
        return float((desk.operator.clock() - alive).total_seconds())

    desk.pass_time(f"{299 - since()} seconds")
    desk.worker.connection.execute("select trunkline.run_duties()")
    assert desk.rows("select count(*) from trunkline.workers where state = 'gone'") == [(1,)]
    desk.worker.value("select executor.run_wake_ups()")
    assert desk.row(job).status == "running"
    while not (claim := desk.worker.claim("next", 10)).rows:
        assert since() < 330
        desk.pass_time("5 seconds")
        desk.worker.value("select executor.run_wake_ups()")
    assert claim.jobs == [job]
    assert 300 <= since() <= 330


def test_rc_30_the_worker_beats_for_long_jobs(scene: Scene) -> None:
    """RC-30, RC-54: without a word of the handler, within 15 seconds and a third of the TTL."""
    desk = scene.desk
    desk.operator.value(
        "select executor.set_job_type('run_tsa', '3 seconds', p_heartbeat_every => '1 second')"
    )
    scene.authority.hold.clear()
    scene.work()
    scene.protect("doc-1")
    row = scene.wait(lambda: scene.running("run_tsa"), "the stamp is asked for")
    first = scene.wait(lambda: desk.row(row.id).heartbeat_at, "a first beat")
    scene.wait(lambda: desk.row(row.id).heartbeat_at > first, "another one")
    assert desk.reclaim() == []
    scene.authority.hold.set()
    scene.wait(lambda: scene.proof("doc-1") and scene.quiet(), "the proof of doc-1")
    ended = desk.row(row.id)
    assert (ended.status, ended.attempts) == ("succeeded", 1)
    assert ended.heartbeat_at > first


def test_rc_61_our_worker_needs_no_heartbeat_function(scene: Scene) -> None:
    """RC-61, RC-64: it beats through the engine, whatever phases are installed."""
    from trunkline import profiles  # noqa: PLC0415 - only here
    from trunkline.profiles import installer  # noqa: PLC0415 - only here

    beats = "select count(*) from pg_proc where proname = 'update_job_heartbeat'"
    assert scene.desk.operator.value(beats) == 1
    installer.rollback(scene.desk.database.dsn, profiles.get("executor"))
    assert scene.desk.operator.value(beats) == 0
    scene.work()
    job = scene.protect("doc-1")
    scene.wait(lambda: scene.proof("doc-1") and scene.quiet(), "the proof of doc-1")
    assert scene.desk.operator.value("select state from trunkline.job(%s)", job) == "completed"


def test_rc_50_bad_input_is_dead_at_once(scene: Scene) -> None:
    """RC-50: no further attempt could help, and the reason is on record."""
    scene.work()
    job = scene.protect("doc-1", path="../secret")
    scene.wait(lambda: scene.desk.row(job).status == "dead", "the job is dead")
    assert "leads out of the inbox" in scene.desk.row(job).last_error
    assert scene.desk.row(job).attempts == 2


def test_a_service_that_is_away_is_tried_again(scene: Scene) -> None:
    """RC-18, RC-21: a failed attempt, with the back-off of the type."""
    scene.chain.close()
    scene.work()
    scene.protect("doc-1")
    query = "select * from executor.executor_jobs where last_error like %s and status = 'queued'"
    found = scene.wait(
        lambda: scene.desk.rows(query, "ServiceProblem: % did not answer:%"), "a failed attempt"
    )
    assert {row.attempts for row in found} == {2}
    scene.chain = StubChain()


def test_the_tasks_leave_their_times_to_the_rows(tmp_path: Path) -> None:
    """RC-06: a worker that starts does not take back what an operator set."""
    with StubAuthority() as authority:
        services = tasks.Services(
            inbox=tmp_path,
            store=Store(tmp_path),
            authority=Service(authority.url),
            trusted=authority.certificate,
            chain=Service("http://127.0.0.1:1"),
        )
    app = Trunkline("postgresql:///nowhere")
    declared = tasks.build(app, services)
    assert declared.keys() == {*TYPES, "decide_next_step"} == app.tasks.keys()
    for name, task in declared.items():
        assert task.policy.lease is task.policy.hard_limit is task.policy.max_attempts is None
        assert task.policy.queue == (
            tasks.DECISIONS if name == "decide_next_step" else tasks.ORCHESTRATOR
        )


def test_the_environment_must_say_what_to_work_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUNKLINE_EXECUTOR_INBOX", "/tmp")  # noqa: S108 - never used
    monkeypatch.delenv("TRUNKLINE_EXECUTOR_STORE", raising=False)
    with pytest.raises(ProfileError, match="are missing") as error:
        __import__("trunkline_profiles.executor.app")
    assert "TRUNKLINE_EXECUTOR_STORE" in str(error.value.hint)
    assert "TRUNKLINE_EXECUTOR_INBOX" not in str(error.value.hint)
