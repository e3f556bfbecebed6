"""Assertions about what was enqueued, and the messages when they fail."""

from collections.abc import Iterator
from datetime import UTC, timedelta

import pytest

from tests.testing import shop
from tests.testing.shop import app
from trunkline.errors import InvalidDuration, PayloadMismatch
from trunkline.testing import Drained, Sandbox


@pytest.fixture(scope="module")
def opened() -> Iterator[Sandbox]:
    with Sandbox(app) as made:
        yield made


@pytest.fixture
def sandbox(opened: Sandbox) -> Iterator[Sandbox]:
    yield opened
    for job in opened.all_enqueued():
        app.sync.jobs.cancel(job.id)


def test_jobs_are_found_by_task_and_part_of_the_payload(sandbox: Sandbox) -> None:
    shop.mail.sync.enqueue(to="ann", lines={"nail": 2, "saw": 1})
    shop.mail.sync.enqueue(to="bob")
    [job] = sandbox.assert_enqueued(shop.mail, to="ann", count=1)
    assert job.payload == {"to": "ann", "lines": {"nail": 2, "saw": 1}}
    assert (job.queue, job.priority) == ("mail", 5)
    assert len(sandbox.assert_enqueued(shop.mail, count=2)) == 2
    sandbox.assert_enqueued("mail", to="bob")
    sandbox.assert_enqueued(shop.mail, lines={"nail": 2})
    sandbox.assert_enqueued(shop.mail, {"to": "ann"})
    sandbox.refute_enqueued(shop.mail, to="eve")
    sandbox.refute_enqueued(shop.mail, lines={"nail": 3})
    sandbox.refute_enqueued(shop.ship)


def test_defaults_count_as_if_they_were_given(sandbox: Sandbox) -> None:
    shop.ship.sync.enqueue(order=1)
    sandbox.assert_enqueued(shop.ship, copies=1)
    sandbox.refute_enqueued(shop.ship, copies=2)
    sandbox.refute_enqueued(shop.ship, copies=True)
    sandbox.assert_enqueued(shop.mail, count=0)


def test_all_of_them_in_the_order_of_their_making(sandbox: Sandbox) -> None:
    app.sync.enqueue_many([shop.ship.request(n) for n in range(10)])
    shop.mail.sync.options(priority=40).enqueue(to="ann")
    jobs = sandbox.all_enqueued()
    assert [(job.payload or {}).get("order") for job in jobs] == [*range(10), None]


def test_a_failure_lists_what_was_there(sandbox: Sandbox) -> None:
    with pytest.raises(AssertionError, match="no job is waiting"):
        sandbox.assert_enqueued(shop.ship)
    shop.ship.sync.options(tenant="acme", priority=3).enqueue(order=1)
    shop.mail.sync.options(delay="1h").enqueue(to="ann")
    with pytest.raises(AssertionError) as caught:
        sandbox.assert_enqueued(shop.ship, order=2)
    first, *lines = str(caught.value).splitlines()
    assert first == 'expected a job of ship {"order": 2}, found 0; waiting:'
    assert lines[0] == '  ship {"order": 1} (ready, queue default, priority 3, tenant acme)'
    assert lines[1].startswith('  mail {"to": "ann"} (scheduled for ')
    with pytest.raises(AssertionError, match="expected 2 jobs of ship, found 1"):
        sandbox.assert_enqueued(shop.ship, count=2)
    with pytest.raises(AssertionError, match=r'no job of ship {"order": 1}, found 1:\n  ship'):
        sandbox.refute_enqueued(shop.ship, order=1)


def test_a_long_list_and_a_long_payload_are_cut(sandbox: Sandbox) -> None:
    shop.mail.sync.enqueue(to="x" * 1000)
    app.sync.enqueue_many([shop.ship.request(n) for n in range(30)])
    with pytest.raises(AssertionError) as caught:
        sandbox.assert_enqueued(shop.order)
    assert "and 11 more" in str(caught.value)
    assert max(len(line) for line in str(caught.value).splitlines()) < 300


def test_a_parameter_that_does_not_exist_is_a_mistake_of_the_test(sandbox: Sandbox) -> None:
    with pytest.raises(PayloadMismatch, match="ship has no parameter ordr; it has order, copies"):
        sandbox.assert_enqueued(shop.ship, ordr=1)
    with pytest.raises(PayloadMismatch, match="has no parameter x"):
        sandbox.refute_enqueued(shop.ship, x=1)
    with pytest.raises(PayloadMismatch, match="No payload can hold"):
        sandbox.assert_enqueued(shop.ship, order=object())


def test_time_moves_for_the_engine(sandbox: Sandbox) -> None:
    handle = shop.ship.sync.options(delay="2h").enqueue(order=1)
    before = sandbox.now()
    assert sandbox.drain() == Drained()
    assert sandbox.move_time("119m") - before < timedelta(minutes=120)
    assert sandbox.drain() == Drained()
    assert sandbox.move_time(timedelta(minutes=2)) - before > timedelta(minutes=120)
    assert sandbox.drain() == Drained(completed=1)
    finished = handle.get().finished_at
    assert finished is not None
    assert finished - before > timedelta(hours=2)
    with pytest.raises(InvalidDuration):
        sandbox.move_time("-1h")


def test_schedules_enqueue_when_their_time_has_come(sandbox: Sandbox) -> None:
    # From noon on, whenever this runs and however far other tests have moved the time.
    now = sandbox.now().astimezone(UTC)
    sandbox.move_time(now.replace(hour=12, minute=0) + timedelta(days=1) - now)
    sandbox.run_duties()
    for job in sandbox.all_enqueued():
        app.sync.jobs.cancel(job.id)
    sandbox.run_duties()
    sandbox.refute_enqueued(shop.nightly)
    sandbox.move_time("25h")
    sandbox.refute_enqueued(shop.nightly)
    sandbox.run_duties()
    sandbox.assert_enqueued(shop.nightly, count=1)


def test_jobs_of_a_lost_worker_come_back(sandbox: Sandbox) -> None:
    """Whoever claimed it is gone; after the lease it is ready again."""
    from trunkline.db.calls import work  # noqa: PLC0415 - a worker that dies, by hand
    from trunkline.db.connect import connect  # noqa: PLC0415
    from trunkline.db.runner import run  # noqa: PLC0415

    shop.ship.sync.enqueue(order=1)
    with connect(sandbox.dsn) as connection:
        assert len(run(connection, work.claim("gone", None, 1, None, None)).jobs) == 1
    sandbox.refute_enqueued(shop.ship)
    sandbox.move_time("1h")
    sandbox.run_duties()
    sandbox.assert_enqueued(shop.ship, order=1)
