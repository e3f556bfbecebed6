"""Dead letters are grouped by error, edited, and replayed at a pace that stops by itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest

from tests.operate.conftest import Scene
from tests.support.waiting import until
from trunkline import Trunkline
from trunkline.errors import (
    EmptyFilter,
    InvalidArgument,
    LimitKeyMissing,
    PayloadMismatch,
    PayloadNotObject,
    PayloadTooLarge,
    SchemaForbidden,
    UniqueKeyHeld,
    UnknownJob,
    WrongState,
)
from trunkline.model import JobState
from trunkline.operate import JobFilter

# Texts, and the pattern that all of them have.
PATTERNS = [
    (
        ["user 17 not found", "user -4 not found", "user 1,234.5 not found"],
        "ValueError: user <number> not found",
    ),
    (
        [
            "job 0199c2f0-6d5e-7a41-9f0b-3c1d2e4f5a6b gone",
            "job 5f3C9D10-0000-4000-8000-00000000000A gone",
        ],
        "ValueError: job <uuid> gone",
    ),
    (
        ['no key "a b" in row', 'no key "" in row', "no key 'it' in row", "no key `x` in row"],
        "ValueError: no key <text> in row",
    ),
    (["at 0xDEADbeef", "at 0x1"], "ValueError: at <number>"),
    (
        ["object 5d41402abc4b2a76b9719d911017c592", "object deadbeef1"],
        "ValueError: object <number>",
    ),
    (["can't open it", "can't  open\nit"], "ValueError: can't open it"),
    (["due 2026-01-31 08:00:01"], "ValueError: due <number> <number>"),
    (["décédé façade"], "ValueError: décédé façade"),
]


@pytest.mark.parametrize(("texts", "pattern"), PATTERNS)
def test_what_varies_is_removed_from_an_error(scene: Scene, texts: list[str], pattern: str) -> None:
    for text in texts:
        scene.bury(1, error=text)
    scene.bury(1, error="something else")
    found = {group.pattern: group for group in scene.operator.dead.groups()}
    assert found[pattern].jobs == len(texts)
    assert len(found) == 2


def test_the_fingerprint_depends_on_the_error_alone(scene: Scene) -> None:
    """It is immutable, so it is the same in every session and database."""
    scene.bury(1, error="boom 1")
    [group] = scene.operator.dead.groups()
    assert group.error_group == "c42bb8020a73bfd6"


def test_groups_have_counts_times_tasks_and_a_sample(scene: Scene) -> None:
    scene.calls.register("other")
    scene.bury(2, error="boom 1")
    scene.database.move_time("1 hour")
    newest = scene.bury(1, error="boom 22", task="other", tenant="acme", tags=["x"])[0]
    scene.bury(1, error="rare")
    first, second = scene.operator.dead.groups()
    assert (first.jobs, first.more, first.tasks) == (3, False, {"work": 2, "other": 1})
    assert (second.jobs, second.pattern) == (1, "ValueError: rare")
    assert (first.last_died_at - first.first_died_at).total_seconds() >= 3600
    assert first.sample_job == newest
    assert first.sample_error == {"type": "ValueError", "message": "boom 22"}
    assert len(scene.operator.dead.find(JobFilter(error_group=first.error_group)).jobs) == 3
    assert scene.operator.jobs.get(newest).error_group == first.error_group
    for fields in (
        {"task": "other"},
        {"tenant": "acme"},
        {"tag": "x"},
        {"error": "BOOM 2"},
        {"job_ids": [newest]},
    ):
        [only] = scene.operator.dead.groups(JobFilter(**fields))
        assert (only.error_group, only.jobs) == (first.error_group, 1)
    assert len(scene.operator.dead.groups(limit=1)) == 1
    assert scene.operator.dead.groups(JobFilter(state="ready")) == []
    scene.operator.dead.acknowledge(newest)
    [seen] = scene.operator.dead.groups(JobFilter(acknowledged=True))
    assert seen.jobs == 1


def test_a_group_is_replayed_by_its_filter(scene: Scene) -> None:
    boom = scene.bury(3, error="boom 1")
    scene.bury(1, error="rare")
    group = scene.operator.dead.groups()[0]
    [progress] = scene.operator.jobs.retry_matching(JobFilter(error_group=group.error_group))
    assert progress.outcomes == {"replayed": 3}
    assert sorted(progress.job_ids) == sorted(boom)
    assert [left.pattern for left in scene.operator.dead.groups()] == ["ValueError: rare"]


@pytest.mark.parametrize("size", [10, 5000])
@pytest.mark.parametrize("before", [10, 5000])
def test_a_dead_letter_runs_again_with_another_payload(
    scene: Scene, before: int, size: int
) -> None:
    [job] = scene.bury(1, payload={"text": "o" * before, "secret": "4111"})
    payload = {"text": "x" * size}
    answer = scene.operator.dead.retry_edited(job, payload, reason="typo")
    assert (answer.job_id, answer.state) == (job, "ready")
    [claimed] = scene.calls.claim("w2", queues=["burying"]).rows
    assert (claimed.payload, claimed.attempt, claimed.failures) == (payload, 2, 0)
    [line] = scene.operator.log.list()
    assert (line.action, line.object, line.reason) == ("retry_edited", str(job), "typo")
    hashes = [(part or {})["payload_sha256"] for part in (line.before, line.after)]
    assert len(set(hashes)) == 2
    assert "4111" not in str(line)


def test_a_payload_that_does_not_fit_is_refused_and_nothing_changes(scene: Scene) -> None:
    scene.calls.connection.execute(
        "select trunkline.set_limit('user/{user}', '{\"concurrency\": 1}')"
    )
    scene.calls.register("limited", limits=["user/{user}"])
    [plain] = scene.bury(1)
    [limited] = scene.bury(1, task="limited", payload={"user": "ann"})
    edit: Any = scene.operator.dead.retry_edited
    with pytest.raises(PayloadNotObject):
        edit(plain, [1])
    with pytest.raises(PayloadTooLarge):
        edit(plain, {"text": "x" * 300_000})
    with pytest.raises(LimitKeyMissing):
        edit(limited, {"name": "ann"})
    assert scene.states() == {"dead": 2}
    assert scene.operator.jobs.get(limited).payload == {"user": "ann"}
    # With its keys, the job waits for the bucket of the new payload.
    edit(limited, {"user": "bob"})
    names = scene.calls.connection.execute(
        "select name from trunkline.buckets where waiting > 0"
    ).fetchall()
    assert names == [("user/bob",)]


def test_a_payload_is_checked_against_the_handler(scene: Scene) -> None:
    app = Trunkline(scene.database.dsn)

    @app.task(name="work")
    def work(number: int) -> None:
        """Take a number."""

    @app.task(name="other")
    def other() -> None:
        """Take nothing."""

    [job] = scene.bury(1, payload={"number": "seven"})
    edit = scene.operator.dead.retry_edited
    for payload in ({"number": "7"}, {"numer": 7}, {}):
        with pytest.raises(PayloadMismatch):
            edit(job, payload, task=work)
    with pytest.raises(InvalidArgument):
        edit(job, {}, task=other)
    assert scene.states() == {"dead": 1}
    edit(job, {"number": 7}, task=work)
    assert scene.states() == {"ready": 1}


def test_only_a_dead_letter_can_be_edited(scene: Scene) -> None:
    edit = scene.operator.dead.retry_edited
    with pytest.raises(WrongState):
        edit(scene.calls.enqueue().job_id, {})
    with pytest.raises(WrongState):
        edit(scene.finish()[0], {})
    with pytest.raises(UnknownJob):
        edit(uuid4(), {})
    [job] = scene.bury(1, unique_key="k")
    scene.calls.enqueue(unique_key="k")
    with pytest.raises(UniqueKeyHeld):
        edit(job, {})
    assert scene.operator.jobs.get(job).state is JobState.DEAD


@contextmanager
def worker(scene: Scene, *, fails: bool) -> Iterator[None]:
    """A worker that ends every replayed job at once, well or badly."""
    calls, over = scene.database.superuser(), threading.Event()

    def work() -> None:
        while not over.is_set():
            rows = calls.execute(
                "select job_id, attempt from trunkline.claim('w9', array['burying'], 100)"
            ).fetchall()
            jobs, attempts = [row[0] for row in rows], [row[1] for row in rows]
            if jobs and fails:
                calls.execute("select trunkline.fail('w9', %s, %s)", (jobs, attempts))
            elif jobs:
                calls.execute("select trunkline.complete('w9', %s, %s)", (jobs, attempts))
            over.wait(0.01)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_paced_replay_goes_through_all(scene: Scene) -> None:
    scene.bury(45)
    with worker(scene, fails=False):
        steps = list(scene.operator.dead.replay(JobFilter(queue="burying"), rate=100, stop_at=0.1))
    assert steps[-1].replayed == 45
    assert (steps[-1].failed, steps[-1].stopped, steps[-1].cursor) == (0, False, None)
    assert scene.operator.dead.find().jobs == []


def test_a_paced_replay_stops_when_too_many_fail_again(scene: Scene) -> None:
    scene.bury(60)
    with worker(scene, fails=True):
        steps = list(
            scene.operator.dead.replay(
                JobFilter(queue="burying"), rate=20, stop_at=0.1, at_least=20
            )
        )
    last = steps[-1]
    assert last.stopped
    assert last.failed > 0.1 * last.replayed
    assert last.replayed < 60
    assert last.cursor is not None
    # Nothing is half done: what was not replayed is still there.
    dead = len(scene.operator.dead.find(limit=1000).jobs)
    assert dead == 60 - last.replayed
    rest = scene.operator.dead.replay(JobFilter(queue="burying"), rate=1000, cursor=last.cursor)
    assert sum(step.cursor is None for step in rest) == 1
    assert scene.operator.dead.find().jobs == []


def test_the_pace_is_kept(scene: Scene) -> None:
    import time  # noqa: PLC0415

    scene.bury(6)
    started = time.monotonic()
    steps = list(scene.operator.dead.replay(JobFilter(queue="burying"), rate=4))
    assert sorted({step.replayed for step in steps}) == [4, 6]
    assert time.monotonic() - started >= 1.0


def test_a_slow_replay_reports_each_second(scene: Scene) -> None:
    scene.bury(2)
    # One in an hour: the second report must not take as long.
    steps = scene.operator.dead.replay(JobFilter(queue="burying"), rate=1 / 3600)
    assert [next(steps).replayed for _ in range(3)] == [1, 1, 1]
    assert len(scene.operator.dead.find().jobs) == 1


def test_a_replay_counts_failures_of_its_last_batch(scene: Scene) -> None:
    scene.bury(3)
    replay = scene.operator.dead.replay(
        JobFilter(queue="burying"), rate=1000, stop_at=0.1, at_least=3
    )
    # All of it is one batch, and no job of it has started yet.
    first = next(replay)
    assert (first.replayed, first.failed, first.cursor) == (3, 0, None)
    with worker(scene, fails=True):
        *_, last = replay
    assert last.stopped
    assert last.failed > 0


def test_a_replay_does_not_wait_for_jobs_that_have_ended(scene: Scene) -> None:
    scene.bury(3)
    replay = scene.operator.dead.replay(JobFilter(queue="burying"), rate=1000, stop_at=0.5)
    next(replay)
    with worker(scene, fails=False):
        until(lambda: scene.states() == {"completed": 3}, "the replayed jobs have completed")
        steps = list(replay)
    assert [step.completed for step in steps] == [3]


def test_an_empty_group_is_an_error(scene: Scene) -> None:
    with pytest.raises(UnknownJob, match="no dead letter matches"):
        list(scene.operator.dead.replay(JobFilter(error_group="0" * 16), rate=5))
    with pytest.raises(EmptyFilter):
        list(scene.operator.dead.replay(JobFilter(), rate=5))


@pytest.mark.parametrize(
    "arguments", [{"rate": 0}, {"rate": -1}, {"rate": 1, "stop_at": 1.5}, {"rate": 1e9}]
)
def test_a_bad_pace_is_refused(scene: Scene, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        list(scene.operator.dead.replay(JobFilter(task="work"), **arguments))


def test_roles_read_groups_and_edit_as_documented(scene: Scene) -> None:
    [job] = scene.bury(1, tenant="b")
    assert len(scene.as_role("reader").dead.groups()) == 1
    for role in ("producer", "worker"):
        with pytest.raises(SchemaForbidden):
            scene.as_role(role).dead.groups()
    for role in ("producer", "worker", "reader"):
        with pytest.raises(SchemaForbidden):
            scene.as_role(role).dead.retry_edited(job, {})
    tenant = scene.as_role("operator", tenant="a").dead
    assert tenant.groups() == []
    with pytest.raises(UnknownJob):
        tenant.retry_edited(job, {})
