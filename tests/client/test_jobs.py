"""Jobs that exist: get, list, wait, cancel, retry, explain."""

import asyncio
import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from threading import Thread
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.client.twins import Hands, Twin
from tests.support.internals.jobs import bring_forward
from trunkline import Job, JobState, Task, Trunkline
from trunkline.errors import (
    InvalidArgument,
    JobCancelled,
    JobFailed,
    LimitOutOfRange,
    ResultMismatch,
    UnknownJob,
    WaitTimeout,
    WrongState,
)


@dataclass
class Receipt:
    number: int
    at: datetime


RECEIPT = Receipt(7, datetime(2026, 1, 2, tzinfo=UTC))


@pytest.fixture
def send(app: Trunkline) -> Task[..., Receipt]:
    @app.task(queue="mail")
    def send(to: str) -> Receipt:
        return RECEIPT

    return send


def stored(receipt: Receipt) -> str:
    return json.dumps(asdict(receipt), default=datetime.isoformat)


def test_wait_gives_the_typed_result(twin: Twin, send: Task[..., Receipt], hands: Hands) -> None:
    handle = twin(twin.of(send).enqueue(to="ann"))
    hands.complete(stored(RECEIPT))
    assert twin(handle.wait(timeout=180)) == RECEIPT
    assert twin(twin.jobs.wait(handle, timeout="3m")) == RECEIPT
    # By its id nobody knows the type.
    assert twin(twin.jobs.wait(handle.id))["number"] == 7
    assert twin(twin.jobs.wait(str(handle.id)))["number"] == 7


def test_wait_waits_for_the_end(twin: Twin, send: Task[..., Receipt], hands: Hands) -> None:
    handle = twin(twin.of(send).enqueue(to="ann"))
    [attempt] = hands.take()
    end = Thread(
        target=lambda: hands.connection.execute(
            "select trunkline.complete(p_worker => 'by hand', p_jobs => array[%s], "
            "p_attempts => array[%s], p_results => array[%s::jsonb])",
            (attempt.job, attempt.number, stored(RECEIPT)),
        )
    )
    with pytest.raises(WaitTimeout) as caught:
        twin(handle.wait(timeout=0))
    assert isinstance(caught.value, TimeoutError)
    assert (caught.value.job_id, caught.value.code) == (handle.id, "wait_timeout")
    assert "explain" in caught.value.hint
    end.start()
    assert twin(handle.wait(timeout=180)) == RECEIPT
    end.join()


def test_wait_raises_what_became_of_a_dead_job(
    twin: Twin, send: Task[..., Receipt], hands: Hands
) -> None:
    handle = twin(twin.of(send).options(max_attempts=2).enqueue(to="ann"))
    hands.fail('{"type": "ValueError", "message": "no such address"}', retryable=True)
    hands.value("select count(trunkline.reprioritise(%s, 1))", handle.id)
    bring_forward(hands.connection, "1 hour")
    hands.fail('{"type": "OSError", "message": "no line"}', retryable=True)
    with pytest.raises(JobFailed, match="no line") as caught:
        twin(handle.wait(timeout=180))
    failed = caught.value
    assert (failed.job_id, failed.code) == (handle.id, "job_failed")
    assert failed.error is not None
    assert failed.error["type"] == "OSError"
    assert len(failed.errors) == 2
    assert "dead replay" in failed.hint


def test_wait_raises_on_a_cancellation(twin: Twin, send: Task[..., Receipt]) -> None:
    handle = twin(twin.of(send).enqueue(to="ann"))
    changed = twin(handle.cancel("changed my mind"))
    assert (changed.job_id, changed.state) == (handle.id, "cancelled")
    with pytest.raises(JobCancelled, match="changed my mind") as caught:
        twin(handle.wait(timeout=180))
    assert (caught.value.job_id, caught.value.reason) == (handle.id, "changed my mind")


def test_a_result_that_does_not_fit_is_an_error(
    twin: Twin, send: Task[..., Receipt], hands: Hands
) -> None:
    handle = twin(twin.of(send).enqueue(to="ann"))
    hands.complete('{"number": "seven"}')
    with pytest.raises(ResultMismatch, match="send"):
        twin(handle.wait(timeout=180))
    assert twin(handle.get()).result == {"number": "seven"}


@pytest.mark.parametrize("call", ["get", "wait", "cancel", "retry", "explain"])
def test_an_unknown_job_is_named(twin: Twin, call: str) -> None:
    unknown = uuid4()
    with pytest.raises(UnknownJob) as caught:
        twin(getattr(twin.jobs, call)(unknown))
    assert caught.value.code == "unknown_job"
    assert str(unknown) in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("given", ["", "42", "not-a-uuid", 42, None])
@pytest.mark.parametrize("call", ["get", "wait", "cancel", "retry", "explain"])
def test_what_is_no_id_is_refused_without_asking(twin: Twin, call: str, given: Any) -> None:
    with pytest.raises(InvalidArgument, match="not a UUID") as caught:
        twin(getattr(twin.jobs, call)(given))
    assert "enqueue" in caught.value.hint


def test_a_list_is_newest_first_and_filtered(
    twin: Twin, app: Trunkline, send: Task[..., Receipt], hands: Hands
) -> None:
    @app.task
    def other() -> None: ...

    old = twin(twin.of(send).options(tenant="acme").enqueue(to="a"))
    hands.complete()
    new = twin(twin.of(other).enqueue())
    later = twin(twin.of(send).options(delay="1h").enqueue(to="b"))

    def ids(**filters: Any) -> list[UUID]:
        found: list[Job] = twin(twin.jobs.list(**filters))
        return [job.id for job in found]

    assert set(ids()) == {old.id, new.id, later.id}
    assert ids(state="completed") == [old.id]
    assert ids(state=JobState.SCHEDULED) == [later.id]
    assert set(ids(state=["ready", JobState.SCHEDULED])) == {new.id, later.id}
    assert ids(state=[]) == []
    assert ids(task="other") == [new.id]
    assert set(ids(queue="mail")) == {old.id, later.id}
    assert ids(tenant="acme") == [old.id]
    assert ids(tenant="other") == []
    [job] = twin(twin.jobs.list(task="other"))
    assert (job.payload, job.state) == (None, JobState.READY)


def test_pages_meet_every_job_once(twin: Twin, send: Task[..., Receipt]) -> None:
    handles = twin(twin.client.enqueue_many(twin.of(send).request(to=str(n)) for n in range(25)))
    seen: list[UUID] = []
    before = None
    while page := twin(twin.jobs.list(limit=10, before=before)):
        assert len(page) <= 10
        seen += [job.id for job in page]
        before = page[-1].id
    assert seen == sorted((handle.id for handle in handles), reverse=True)


@pytest.mark.parametrize(
    ("filters", "error"),
    [
        ({"state": "waiting"}, InvalidArgument),
        ({"limit": 0}, LimitOutOfRange),
        ({"limit": 1_000_000}, LimitOutOfRange),
        ({"before": "yesterday"}, InvalidArgument),
    ],
)
def test_a_list_that_cannot_be_is_refused(
    twin: Twin, filters: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error) as caught:
        twin(twin.jobs.list(**filters))
    assert getattr(caught.value, "hint", "")


def test_a_running_job_is_asked_to_stop(twin: Twin, send: Task[..., Receipt], hands: Hands) -> None:
    handle = twin(twin.of(send).enqueue(to="ann"))
    hands.take()
    changed = twin(twin.jobs.cancel(handle, "stop"))
    assert (changed.outcome, changed.state) == ("requested", "running")
    assert twin(handle.get()).cancel_requested_at is not None


def test_an_ended_job_cannot_be_cancelled(
    twin: Twin, send: Task[..., Receipt], hands: Hands
) -> None:
    handle = twin(twin.of(send).enqueue(to="ann"))
    hands.complete()
    changed = twin(twin.jobs.cancel(handle))
    assert changed.state == "completed"


def test_a_dead_letter_runs_again_and_an_ended_job_as_a_new_one(
    twin: Twin, send: Task[..., Receipt], hands: Hands
) -> None:
    handle = twin(twin.of(send).enqueue(to="ann"))
    hands.fail('{"message": "no"}')
    again = twin(twin.jobs.retry(handle.id))
    assert (again.job_id, again.state) == (handle.id, "ready")
    hands.complete()
    copy = twin(twin.jobs.retry(handle))
    assert copy.created
    assert copy.job_id != handle.id
    assert twin(twin.jobs.get(copy.job_id)).retry_of == handle.id
    with pytest.raises(WrongState):
        twin(twin.jobs.retry(copy.job_id))


def test_explain_returns_why_a_job_does_not_run(
    twin: Twin, send: Task[..., Receipt], hands: Hands
) -> None:
    handle = twin(twin.of(send).options(delay="1h").enqueue(to="ann"))
    hands.connection.execute("select trunkline.pause_queue(p_queue => 'mail')")
    reasons = {one.reason: one for one in twin(twin.jobs.explain(handle))}
    assert {"scheduled", "queue_paused"} <= reasons.keys()
    assert reasons["scheduled"].until == handle.run_at


def test_many_wait_at_once(app: Trunkline, send: Task[..., Receipt], hands: Hands) -> None:
    async def main() -> list[Receipt]:
        async with app:
            handles = await app.enqueue_many(send.request(to=str(n)) for n in range(30))
            waiting = [asyncio.ensure_future(handle.wait(timeout=180)) for handle in handles]
            for _ in handles:
                await asyncio.to_thread(hands.complete, stored(RECEIPT))
            return list(await asyncio.gather(*waiting))

    assert asyncio.run(main()) == [RECEIPT] * 30
