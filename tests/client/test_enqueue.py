"""Enqueuing: what the engine gets, and what the caller gets back."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from tests.client.twins import Hands, Twin
from tests.support.databases import Database
from trunkline import Backoff, Context, JobHandle, JobState, Task, Trunkline
from trunkline.errors import (
    IdempotencyMismatch,
    InvalidArgument,
    InvalidDuration,
    InvalidPolicy,
    PayloadMismatch,
    PayloadNotObject,
    PayloadTooLarge,
    PriorityOutOfRange,
    QueueFull,
    QueuePaused,
    UnknownTask,
    UnsupportedConnection,
)


@dataclass
class Receipt:
    number: int


@pytest.fixture
def send(app: Trunkline) -> Task[..., Receipt]:
    @app.task(queue="mail", max_attempts=3)
    async def send(ctx: Context, to: str, copies: int = 1) -> Receipt:
        return Receipt(copies)

    return send


def test_a_job_is_what_was_asked_for(twin: Twin, send: Task[..., Receipt]) -> None:
    handle = twin(twin.of(send).enqueue("ann", copies=2))
    assert isinstance(handle.id, UUID)
    assert (handle.created, handle.state, handle.task) == (True, JobState.READY, "send")
    assert abs(handle.run_at - datetime.now(UTC)) < timedelta(minutes=1)
    job = twin(handle.get())
    assert (job.id, job.task, job.queue, job.state) == (handle.id, "send", "mail", "ready")
    assert job.payload == {"to": "ann", "copies": 2}
    assert (job.max_attempts, job.priority, job.attempt, job.tags) == (3, 0, 0, ())


def test_every_option_reaches_the_job(twin: Twin, send: Task[..., Receipt]) -> None:
    options = {
        "priority": 7,
        "queue": "slow",
        "tenant": "acme",
        "correlation_id": "req-1",
        "max_attempts": 9,
        "tags": ["a", "b"],
        "unique_key": "one",
        "idempotency_key": "twice",
        "delay": "1h",
    }
    handle = twin(twin.of(send).options(**options).enqueue(to="ann"))
    assert handle.state is JobState.SCHEDULED
    job = twin(twin.jobs.get(handle))
    assert (job.priority, job.queue, job.tenant) == (7, "slow", "acme")
    assert (job.correlation_id, job.max_attempts, job.tags) == ("req-1", 9, ("a", "b"))
    assert (job.unique_key, job.state) == ("one", "scheduled")
    assert job.run_at is not None
    assert timedelta(minutes=59) < job.run_at - job.created_at < timedelta(minutes=61)


def test_run_at_is_an_instant_whatever_its_zone(twin: Twin, send: Task[..., Receipt]) -> None:
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    zone = at.astimezone(ZoneInfo("Asia/Tokyo"))
    handle = twin(twin.of(send).options(run_at=zone).enqueue(to="ann"))
    assert handle.run_at == at


def test_options_add_up_and_the_last_one_wins(twin: Twin, send: Task[..., Receipt]) -> None:
    calls = twin.of(send).options(priority=1, queue="a").options(priority=2)
    job = twin(twin(calls.enqueue(to="ann")).get())
    assert (job.priority, job.queue) == (2, "a")
    plain = twin(twin(twin.of(send).enqueue(to="ann")).get())
    assert (plain.priority, plain.queue) == (0, "mail")


def test_many_jobs_of_many_tasks_are_answered_in_their_order(
    twin: Twin, app: Trunkline, send: Task[..., Receipt]
) -> None:
    @app.task
    def other(number: int) -> int:
        return number

    requests = []
    for number in range(20):
        requests.append(twin.of(send).request(to=str(number)))
        requests.append(twin.of(other).options(priority=number % 3).request(number))
    handles = twin(twin.client.enqueue_many(requests))
    assert [handle.task for handle in handles] == ["send", "other"] * 20
    for number in range(20):
        assert twin(handles[2 * number].get()).payload == {"to": str(number)}
        job = twin(handles[2 * number + 1].get())
        assert (job.payload, job.priority) == ({"number": number}, number % 3)


def test_many_jobs_of_one_task_share_its_options(twin: Twin, send: Task[..., Receipt]) -> None:
    calls = twin.of(send).options(tenant="acme", priority=5)
    own = twin.of(send).options(priority=1).request(to="b")
    handles = twin(calls.enqueue_many([calls.request(to="a"), own]))
    first, second = (twin(handle.get()) for handle in handles)
    assert (first.tenant, first.priority) == ("acme", 5)
    assert (second.tenant, second.priority) == ("acme", 1)
    assert twin(twin.client.enqueue_many([])) == []


def test_all_or_none(twin: Twin, send: Task[..., Receipt]) -> None:
    good, bad = twin.of(send).request(to="a"), twin.of(send).options(priority=50).request(to="b")
    with pytest.raises(PriorityOutOfRange) as caught:
        twin(twin.client.enqueue_many([good, bad]))
    assert caught.value.detail["priority"] == 50
    assert twin(twin.jobs.list()) == []


def test_an_idempotency_key_gives_the_first_job_even_after_its_end(
    twin: Twin, app: Trunkline, send: Task[..., Receipt], hands: Hands
) -> None:
    @app.task
    def other() -> None: ...

    calls = twin.of(send).options(idempotency_key="order 1")
    first = twin(calls.enqueue(to="ann"))
    hands.complete()
    again = twin(calls.enqueue(to="ann"))
    assert (again.id, again.created, again.state) == (first.id, False, JobState.COMPLETED)
    with pytest.raises(IdempotencyMismatch) as caught:
        twin(twin.of(other).options(idempotency_key="order 1").enqueue())
    assert caught.value.hint


def test_a_unique_key_gives_the_live_job_and_is_free_after_it(
    twin: Twin, send: Task[..., Receipt], hands: Hands
) -> None:
    calls = twin.of(send).options(unique_key="ann")
    first = twin(calls.enqueue(to="ann"))
    again = twin(calls.enqueue(to="bob"))
    assert (again.id, again.created) == (first.id, False)
    hands.complete()
    new = twin(calls.enqueue(to="ann"))
    assert new.created
    assert new.id != first.id


def test_parallel_requests_with_one_key_make_one_job(
    app: Trunkline, send: Task[..., Receipt]
) -> None:
    """Twenty at once: one is created, the others are led to it (EX-14)."""

    async def main() -> list[JobHandle[Receipt]]:
        async with app:
            calls = send.options(unique_key="ann")
            return list(await asyncio.gather(*(calls.enqueue(to="ann") for _ in range(20))))

    handles = asyncio.run(main())
    assert len({handle.id for handle in handles}) == 1
    assert sum(handle.created for handle in handles) == 1


@pytest.mark.parametrize("expires", [timedelta(minutes=5), "5m", 300, "a moment"])
def test_a_job_has_a_deadline_for_its_start(
    twin: Twin, database: Database, send: Task[..., Receipt], expires: Any
) -> None:
    length = timedelta(minutes=5)
    begin = datetime.now(UTC)
    given = begin + length if expires == "a moment" else expires
    handle = twin(twin.of(send).options(expires=given).enqueue(to="ann"))
    deadline = twin(handle.get()).expires_at
    assert deadline is not None
    assert begin + length <= deadline <= datetime.now(UTC) + length
    database.move_time("7 minutes")
    database.superuser().execute("select trunkline.run_duties()")
    job = twin(handle.get())
    assert (job.state, job.reason) == ("cancelled", "expired")


def test_a_deadline_without_a_zone_or_that_has_passed_is_refused(
    twin: Twin, send: Task[..., Receipt]
) -> None:
    with pytest.raises(InvalidArgument, match="expires has no time zone"):
        twin.of(send).options(expires=datetime(2099, 1, 1))  # noqa: DTZ001 - what is refused
    with pytest.raises(InvalidArgument) as caught:
        twin(twin.of(send).options(expires=datetime(2001, 1, 1, tzinfo=UTC)).enqueue(to="ann"))
    assert caught.value.detail["argument"] == "p_expires_at"
    assert "later than now" in caught.value.detail["must_be"]


def test_what_is_none_is_as_if_it_were_left_out(twin: Twin, send: Task[..., Receipt]) -> None:
    """Null priority or time is the default, never stored as null (CP-22)."""
    calls = twin.of(send).options(priority=None, run_at=None, delay=None, tags=None, queue=None)
    job = twin(twin(calls.enqueue(to="ann")).get())
    assert (job.priority, job.queue, job.state, job.tags) == (0, "mail", "ready", ())
    assert job.run_at is not None


def test_by_name_where_the_handler_is_not_at_hand(
    twin: Twin, database: Database, send: Task[..., Receipt]
) -> None:
    """An unknown name is refused with the known ones, and nothing is stored (CP-19)."""
    twin(twin.of(send).enqueue(to="ann"))
    with pytest.raises(UnknownTask) as caught:
        twin(twin.jobs.enqueue("sent", {"to": "ann"}))
    assert caught.value.code == "unknown_task"
    assert caught.value.detail["known"] == ["send"]
    assert len(twin(twin.jobs.list())) == 1
    with Twin(Trunkline(database.dsn), blocking=twin.blocking) as stranger:
        handle = stranger(stranger.jobs.enqueue("send", {"to": "bob"}, priority=3))
        job = stranger(stranger.jobs.get(handle))
        assert (job.payload, job.priority, job.queue) == ({"to": "bob"}, 3, "mail")
        empty = stranger(stranger.jobs.enqueue("send"))
        assert stranger(empty.get()).payload == {}
        with pytest.raises(PayloadMismatch, match="not JSON"):
            stranger(stranger.jobs.enqueue("send", {"to": object()}))
        with pytest.raises(PayloadNotObject):
            stranger(stranger.jobs.enqueue("send", ["bob"]))


def test_the_policy_is_known_before_the_first_worker(twin: Twin, app: Trunkline) -> None:
    @app.task(queue="q", lease="30s", backoff=Backoff(base=5), priority=4, max_attempts=2)
    def work() -> None: ...

    job = twin(twin(twin.of(work).enqueue()).get())
    assert (job.queue, job.priority, job.max_attempts) == ("q", 4, 2)


def test_a_policy_that_could_not_work_is_refused_with_the_reason(
    twin: Twin, app: Trunkline
) -> None:
    @app.task(backoff=Backoff(factor=0.5))
    def work() -> None: ...

    with pytest.raises(InvalidPolicy) as caught:
        twin(twin.of(work).enqueue())
    assert caught.value.hint
    assert twin(twin.jobs.list()) == []


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"prio": 5}, InvalidArgument, "prio"),
        ({"delay": "soon"}, InvalidDuration, "soon"),
        ({"delay": -1}, InvalidDuration, "-1"),
        ({"run_at": datetime(2030, 1, 1)}, InvalidArgument, "no time zone"),  # noqa: DTZ001
        ({"run_at": "tomorrow"}, InvalidArgument, "no time zone"),
        ({"delay": 1, "run_at": datetime.now(UTC)}, InvalidArgument, "p_delay"),
        ({"priority": -51}, PriorityOutOfRange, "-51"),
        ({"queue": ""}, InvalidArgument, "p_queue"),
        ({"tenant": "x" * 401}, InvalidArgument, "p_tenant"),
        ({"max_attempts": 0}, InvalidArgument, "p_max_attempts"),
        ({"tags": ["x"] * 21}, InvalidArgument, "p_tags"),
        ({"tags": object()}, InvalidArgument, "object"),
        ({"unique_key": "\udce9"}, InvalidArgument, "surrogates"),
        ({"connection": object()}, UnsupportedConnection, "object"),
    ],
)
def test_options_that_could_not_be_kept_are_refused(
    twin: Twin,
    send: Task[..., Receipt],
    options: dict[str, Any],
    error: type[Exception],
    sentence: str,
) -> None:
    with pytest.raises(error, match=sentence) as caught:
        twin(twin.of(send).options(**options).enqueue(to="ann"))
    assert getattr(caught.value, "hint", "")
    assert twin(twin.jobs.list()) == []


def test_a_payload_may_be_large_but_not_too_large(twin: Twin, send: Task[..., Receipt]) -> None:
    text = "".join(chr(33 + n * 7919 % 90) for n in range(200_000))
    assert twin(twin(twin.of(send).enqueue(to=text)).get()).payload == {"to": text}
    with pytest.raises(PayloadTooLarge) as caught:
        twin(twin.of(send).enqueue(to=text * 10))
    assert caught.value.detail["bytes"] > caught.value.detail["max_payload_bytes"]
    assert caught.value.hint


def test_a_queue_may_refuse_new_jobs(twin: Twin, send: Task[..., Receipt], hands: Hands) -> None:
    """Full and paused are told apart, and both may pass (CP-25)."""
    hands.value("select trunkline.limit_queue(p_queue => 'mail', p_max_depth => 1)")
    twin(twin.of(send).enqueue(to="ann"))
    with pytest.raises(QueueFull) as full:
        twin(twin.of(send).enqueue(to="bob"))
    hands.connection.execute(
        "select trunkline.pause_queue(p_queue => 'mail', p_refuse_enqueue => true)"
    )
    with pytest.raises(QueuePaused) as paused:
        twin(twin.of(send).enqueue(to="bob"))
    assert full.value.retryable
    assert paused.value.retryable
