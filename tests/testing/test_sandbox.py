"""A database of one test, on the real engine: what a user's test can do with it."""

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tests.testing import shop
from tests.testing.shop import Receipt, app
from trunkline import Cancel, Discard, JobState, Retry, Snooze, Trunkline
from trunkline.errors import (
    DrainUnfinished,
    InvalidTask,
    JobFailed,
    JobNotRunnable,
    PayloadMismatch,
    ResultNotStorable,
    SandboxMisused,
    UnknownTask,
    WrongResult,
)
from trunkline.testing import AsyncSandbox, Drained, Sandbox
from trunkline.testing.serial_worker import SerialWorker


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(app) as made:
        yield made


def test_an_application_is_led_to_the_sandbox_and_back() -> None:
    with Sandbox(app) as one:
        dsn = one.dsn
        assert app.dsn == dsn
        shop.ship.sync.enqueue(1)
        assert len(one.all_enqueued()) == 1
    assert app.dsn == "host=nowhere.invalid"
    with Sandbox(app) as two:
        assert two.all_enqueued() == []
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(dsn)


def test_a_wrong_result_is_an_error_in_the_sandbox_too(sandbox: Sandbox) -> None:
    with pytest.raises(WrongResult, match="weigh") as caught:
        sandbox.run_inline(shop.weigh.request(order=7))
    assert caught.value.value == '"7 kg"'
    job = shop.weigh.sync.enqueue(order=8)
    assert sandbox.drain() == Drained(dead=1)
    assert app.sync.jobs.get(job.id).last_error["value"] == '"8 kg"'  # type: ignore[index]


def test_jobs_under_an_old_name_are_jobs_of_the_renamed_task(sandbox: Sandbox) -> None:
    job = app.sync.jobs.enqueue("post", {"to": "ann"})
    (found,) = sandbox.assert_enqueued(shop.mail, to="ann")
    assert (found.id, found.task, found.queue, found.priority) == (job.id, "post", "mail", 5)
    sandbox.assert_enqueued("post")
    sandbox.refute_enqueued("mail")
    assert sandbox.run_inline(job) == "sent to ann"
    app.sync.jobs.enqueue("post", {"to": "bob"})
    assert sandbox.drain() == Drained(completed=1)


def test_a_payload_of_other_code_is_dead_in_the_sandbox(sandbox: Sandbox) -> None:
    job = app.sync.jobs.enqueue("ship", {"order": 1, "colour": "red"})
    assert sandbox.drain() == Drained(dead=1)
    assert app.sync.jobs.get(job.id).last_error["field"] == "colour"  # type: ignore[index]
    with pytest.raises(PayloadMismatch, match="colour"):
        sandbox.run_inline(app.sync.jobs.enqueue("ship", {"order": 1, "colour": "red"}))


def test_a_closed_sandbox_refuses_calls() -> None:
    sandbox = Sandbox(app)
    for use in (sandbox.drain, sandbox.all_enqueued, sandbox.now, lambda: sandbox.dsn):
        with pytest.raises(SandboxMisused, match="not open") as caught:
            use()
        assert "with Sandbox(app)" in caught.value.hint
    with sandbox, pytest.raises(SandboxMisused, match="already open"):
        sandbox.open()


def test_run_inline_gives_the_typed_result(sandbox: Sandbox) -> None:
    result = sandbox.run_inline(shop.ship.request(order=1, copies=2))
    assert result == Receipt(1, 2)
    handle = shop.ship.sync.enqueue(order=3)
    assert sandbox.run_inline(handle) == Receipt(3, 1)
    assert handle.wait(timeout=180) == Receipt(3, 1)
    job = shop.ship.sync.enqueue(order=4)
    assert sandbox.run_inline(job.id) == Receipt(4, 1)
    [other] = shop.ship.sync.enqueue_many([shop.ship.request(5)])
    assert sandbox.run_inline(other.get()) == Receipt(5, 1)


def test_run_inline_runs_that_job_and_no_other(sandbox: Sandbox) -> None:
    others = shop.ship.sync.enqueue_many([shop.ship.request(n) for n in range(5)])
    shop.mail.sync.options(priority=49).enqueue(to="first")
    chosen = others[3]
    assert sandbox.run_inline(chosen) == Receipt(3, 1)
    assert chosen.get().state is JobState.COMPLETED
    assert len(sandbox.all_enqueued()) == 5


def test_run_inline_raises_the_error_of_the_handler(sandbox: Sandbox) -> None:
    handle = shop.flaky.sync.enqueue(until=3)
    with pytest.raises(ConnectionError, match="attempt 1 failed"):
        sandbox.run_inline(handle)
    job = handle.get()
    assert (job.state, job.failures) == (JobState.SCHEDULED, 1)
    assert job.last_error is not None
    assert "tests" in job.last_error["traceback"]
    assert "trunkline/testing" not in job.last_error["traceback"]
    # Its next attempts: the clock moves to them.
    before = sandbox.now()
    with pytest.raises(ConnectionError, match="attempt 2 failed"):
        sandbox.run_inline(handle)
    assert sandbox.run_inline(handle) == 3
    assert sandbox.now() - before > timedelta(minutes=2)


@pytest.mark.parametrize(
    ("how", "error", "state"),
    [
        ("snooze", Snooze, JobState.SCHEDULED),
        ("cancel", Cancel, JobState.CANCELLED),
        ("retry", Retry, JobState.SCHEDULED),
        ("discard", Discard, JobState.DEAD),
        ("unstorable", ResultNotStorable, JobState.DEAD),
        ("nul", ResultNotStorable, JobState.DEAD),
        ("too large", JobFailed, JobState.DEAD),
        ("?", KeyError, JobState.SCHEDULED),
    ],
)
def test_every_end_is_recorded_as_in_a_worker(
    sandbox: Sandbox, how: str, error: type[Exception], state: JobState
) -> None:
    handle = shop.ending.sync.enqueue(how)
    with pytest.raises(error):
        sandbox.run_inline(handle)
    assert handle.get().state is state


def test_text_that_postgresql_cannot_store_is_cleaned(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of files that are not UTF-8 are in messages of errors; they must hold up nothing."""
    # pytest-xdist cannot pass such lines on.
    monkeypatch.setattr(logging.getLogger("trunkline.worker.executor"), "disabled", True)
    shop.ending.sync.enqueue("strange error")
    shop.ending.sync.enqueue("strange reason")
    assert sandbox.drain() == Drained(failed=1, cancelled=1)
    [failed, cancelled] = sorted(app.sync.jobs.list(), key=lambda job: job.state, reverse=True)
    assert failed.last_error is not None
    assert failed.last_error["message"] == "caf?\ufffd"
    assert cancelled.reason == "caf?\ufffd"


def test_a_payload_that_does_not_fit_is_dead_at_once(sandbox: Sandbox) -> None:
    handle = app.sync.jobs.enqueue("ship", {"order": 1})
    sandbox.run_inline(handle)
    bad = app.sync.jobs.enqueue("ship", {"order": "one"})
    with pytest.raises(PayloadMismatch, match="Expected `int`"):
        sandbox.run_inline(bad)
    assert bad.get().state is JobState.DEAD


def test_jobs_that_cannot_run_are_reported(sandbox: Sandbox) -> None:
    done = shop.ship.sync.enqueue(1)
    sandbox.drain()
    for job in (done, uuid4()):
        with pytest.raises(JobNotRunnable, match="not waiting") as caught:
            sandbox.run_inline(job)
        assert caught.value.hint
    with psycopg.connect(sandbox.dsn, autocommit=True) as connection:
        connection.execute("select trunkline.pause_queue(p_queue => 'mail')")
        with pytest.raises(JobNotRunnable, match="queue_paused"):
            sandbox.run_inline(shop.mail.request(to="a"))
        connection.execute("select trunkline.register_task(p_task => 'foreign')")
    foreign = app.sync.jobs.enqueue("foreign")
    with pytest.raises(UnknownTask, match="foreign"):
        sandbox.run_inline(foreign)
    # Not taken by a drain either, and still there.
    assert sandbox.drain().total == 0
    assert foreign.get().state is JobState.READY


def test_drain_runs_what_handlers_enqueue(sandbox: Sandbox) -> None:
    shop.order.sync.enqueue(1)
    shop.order_in_a_thread.sync.enqueue(2)
    assert sandbox.drain() == Drained(completed=4)
    [later] = sandbox.assert_enqueued(shop.mail, to="customer")
    assert later.state is JobState.SCHEDULED
    assert sandbox.drain(with_scheduled=True) == Drained(completed=1)
    assert sandbox.all_enqueued() == []


def test_drain_can_be_bounded(sandbox: Sandbox) -> None:
    shop.order.sync.enqueue(1)
    assert sandbox.drain(until_empty=False).total == 1
    assert sandbox.drain(0).total == 0
    shop.ship.sync.enqueue_many([shop.ship.request(n) for n in range(4)])
    assert sandbox.drain(max_jobs=3).total == 3
    assert sandbox.drain().total == 2


def test_a_drain_without_end_is_noticed(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.testing.base._RUNAWAY", 20)
    shop.endless.sync.enqueue()
    with pytest.raises(DrainUnfinished, match="More than 20") as caught:
        sandbox.drain()
    assert "max_jobs" in caught.value.hint


def test_drain_counts_every_end(sandbox: Sandbox) -> None:
    for how in ("snooze", "cancel", "retry", "discard", "unstorable", "?"):
        shop.ending.sync.enqueue(how)
    drained = sandbox.drain()
    assert drained == Drained(snoozed=1, cancelled=1, failed=2, dead=2)
    assert drained.total == 6


def test_retries_run_through_with_the_scheduled_ones(sandbox: Sandbox) -> None:
    good, bad = shop.flaky.sync.enqueue(until=3), shop.flaky.sync.enqueue(until=9)
    assert sandbox.drain(with_scheduled=True) == Drained(completed=1, failed=4, dead=1)
    assert good.wait(timeout=180) == 3
    with pytest.raises(JobFailed, match="attempt 3 failed"):
        bad.wait(timeout=180)


def test_a_job_that_comes_due_behind_a_claim_is_not_left(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock goes on between the claim that found nothing and the look at what is next."""
    shop.flaky.sync.options(delay=3600).enqueue(until=1)
    claim = SerialWorker.claim
    late: list[Any] = []

    async def slow(worker: SerialWorker, limit: int = 1) -> Any:
        found = await claim(worker, limit)
        if not late:
            late.append(found)
            await asyncio.to_thread(sandbox.move_time, timedelta(hours=2))
        return found

    monkeypatch.setattr(SerialWorker, "claim", slow)
    assert sandbox.drain(with_scheduled=True) == Drained(completed=1)
    assert late == [[]]


def test_writes_and_completion_commit_together(sandbox: Sandbox) -> None:
    with psycopg.connect(sandbox.dsn, autocommit=True) as connection:
        connection.execute("create table written (name text)")
        assert sandbox.run_inline(shop.written.request("ann")) == "ANN"
        sandbox.run_inline(shop.written_in_a_thread.request("bob"))
        with pytest.raises(ValueError, match="undone"):
            sandbox.run_inline(shop.written_in_a_thread.request("oops"))
        rows = connection.execute("select name from written").fetchall()
    assert sorted(rows) == [("ann",), ("bob",)]


def test_a_sandbox_runs_handlers_in_processes(sandbox: Sandbox) -> None:
    assert sandbox.run_inline(shop.crunch.request(7)) == 49
    assert sandbox.run_inline(shop.crunch.request(0)) != os.getpid()
    with pytest.raises(JobFailed, match="negative"):
        sandbox.run_inline(shop.crunch.request(-1))


def test_jobs_of_an_uncommitted_transaction_are_not_there(sandbox: Sandbox) -> None:
    with psycopg.connect(sandbox.dsn) as connection:
        shop.ship.sync.options(connection=connection).enqueue(1)
        sandbox.refute_enqueued(shop.ship)
        assert sandbox.drain().total == 0
        connection.commit()
    sandbox.assert_enqueued(shop.ship, order=1)


def test_an_application_without_tasks_has_nothing_to_run() -> None:
    with Sandbox(Trunkline()) as sandbox, pytest.raises(InvalidTask, match="no tasks"):
        sandbox.drain()


def test_inside_an_event_loop_the_other_kind_is_needed(sandbox: Sandbox) -> None:
    async def main() -> None:
        sandbox.drain()

    with pytest.raises(SandboxMisused, match="inside an event loop") as caught:
        asyncio.run(main())
    assert "AsyncSandbox" in caught.value.hint


def test_asynchronous_tests_have_the_same() -> None:
    async def main() -> None:
        async with AsyncSandbox(app) as sandbox:
            assert await sandbox.run_inline(shop.ship.request(1)) == Receipt(1, 1)
            handle = await shop.flaky.enqueue(until=2)
            with pytest.raises(ConnectionError):
                await sandbox.run_inline(handle)
            await shop.order.enqueue(7)
            assert await sandbox.drain() == Drained(completed=2)
            sandbox.assert_enqueued(shop.mail, to="customer")
            assert await sandbox.drain(with_scheduled=True) == Drained(completed=2)
            assert await handle.wait(timeout=180) == 2

    asyncio.run(main())
    assert app.dsn == "host=nowhere.invalid"


THREADS = """
import os, pathlib, threading
from trunkline import Trunkline
from trunkline.testing import Sandbox

begin, opened = threading.Barrier(3), threading.Barrier(3)
places = set()

def use():
    begin.wait()
    with Sandbox(Trunkline()) as sandbox:
        opened.wait()
        places.update(pathlib.Path(os.environ["TMPDIR"]).glob("trunkline-sandbox-*"))

threads = [threading.Thread(target=use) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(places))
"""


def test_threads_that_open_the_first_sandboxes_share_one_server(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", THREADS],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (ran.stdout, ran.returncode) == ("1\n", 0), ran.stderr
    assert list(tmp_path.glob("trunkline-sandbox-*")) == []
