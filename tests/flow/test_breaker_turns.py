"""Breakers that change while claims are under way: who is the probe, and who waits for whom."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest

from tests.flow.conftest import Desk
from tests.flow.test_breakers import breaker, calling, opened, seen, state
from tests.flow.test_grants import acquire
from tests.flow.test_waits_for_nobody import impatient
from tests.support.calls import Attempt, Calls
from tests.support.pause import Pauses, ended_or_blocked
from tests.support.waiting import DEADLINE


@pytest.mark.parametrize("how", ["failed", "tripped"])
def test_a_claim_during_which_a_breaker_opens_is_not_its_probe(desk: Desk, how: str) -> None:
    """RF-86: wherever the claim is at that moment. Its success does not close the breaker."""
    calling(breaker(desk, "model/{model}", failures=1), "model/{model}")
    pauses = Pauses(desk.database)
    started = 0

    def claim(worker: Calls) -> list[Attempt]:
        return worker.claim("late", 1).attempts

    for reading in count(1):
        model = f"model/{reading}"
        desk.enqueue(1, payload={"model": str(reading)})
        running = desk.claim(1)
        assert len(running) == 1
        desk.enqueue(1, payload={"model": str(reading)})
        if how == "failed":
            found = pauses.at(
                reading,
                claim,
                lambda running=running: desk.end(running, "fail", delays=["1 hour"]),  # type: ignore[misc]
                desk.worker.connection,
            )
        else:
            found = pauses.at(
                reading,
                claim,
                lambda model=model: desk.operator.value("select trunkline.trip_breaker(%s)", model),  # type: ignore[misc]
                desk.operator.connection,
            )
        if found is None:
            break
        assert state(desk, model) == "open", reading
        if found:
            started += 1
            desk.worker.batch("complete", "late", found)
            assert state(desk, model) == "open", reading
    assert reading > 2
    assert started > 0, "at some reading the claim has taken its job already"


def _reset(desk: Desk) -> Callable[[Calls], Any]:
    """Forty jobs wait behind an open breaker whose probe is due."""
    opened(desk)
    desk.database.move_time("1 minute")
    return lambda calls: calls.value("select trunkline.reset_breaker('api')")


def _trip(desk: Desk) -> Callable[[Calls], Any]:
    calling(breaker(desk))
    desk.enqueue(40)
    return lambda calls: calls.value("select trunkline.trip_breaker('api', 'by hand', '1 hour')")


@pytest.mark.parametrize(("prepare", "left"), [(_reset, 40), (_trip, 0)])
def test_a_claim_passes_by_a_breaker_that_an_operator_is_changing(
    desk: Desk, prepare: Callable[[Desk], Callable[[Calls], Any]], left: int
) -> None:
    """It neither waits for the operator nor goes by what is about to end."""
    change = prepare(desk)
    desk.task(task="free")
    free = desk.enqueue(1, task="free")
    changing = desk.database.connect("trunkline_operator", autocommit=False)
    change(Calls(changing))
    with ThreadPoolExecutor(max_workers=1) as pool:
        claim = pool.submit(desk.claimed)
        waits = ended_or_blocked(desk.behind, desk.worker.connection, claim)
        changing.commit()
        found = claim.result(DEADLINE)
    assert waits == []
    assert found == free
    assert len(desk.claimed()) == left


@pytest.mark.parametrize("prepare", [_reset, _trip])
def test_an_operator_waits_for_a_claim_that_holds_the_breaker(
    desk: Desk, prepare: Callable[[Desk], Callable[[Calls], Any]]
) -> None:
    """What the claim starts counts before the change, not after it."""
    change = prepare(desk)
    claiming = desk.database.connect("trunkline_worker", autocommit=False)
    held = Calls(claiming).claim("w", 1).attempts
    assert len(held) == 1
    with ThreadPoolExecutor(max_workers=1) as pool:
        done = pool.submit(change, desk.operator)
        waits = ended_or_blocked(desk.behind, desk.operator.connection, done)
        claiming.commit()
        done.result(DEADLINE)
    assert waits == [claiming.info.backend_pid]
    expected = ("closed", 0, 0) if prepare is _reset else ("open", 0, 1)
    found = seen(desk)
    assert (found["state"], found["failures"], found["attempts"]) == expected
    # It was the probe of a breaker that is closed, or no probe at all: it decides nothing.
    desk.end(held)
    assert state(desk) == expected[0]


def test_a_call_waits_until_an_operator_has_reset_the_breaker(desk: Desk) -> None:
    opened(desk)
    changing = desk.database.connect("trunkline_operator", autocommit=False)
    assert Calls(changing).value("select trunkline.reset_breaker('api')") == 1
    with ThreadPoolExecutor(max_workers=1) as pool:
        asked = pool.submit(acquire, desk)
        waits = ended_or_blocked(desk.behind, desk.worker.connection, asked)
        changing.commit()
        assert asked.result(DEADLINE).granted
    assert waits == [changing.info.backend_pid]
    assert state(desk) == "closed"


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_lost_probe_is_recovered_while_an_operator_resets_its_breaker(
    desk: Desk, end: str
) -> None:
    """Recovery does not wait for the operator, and the breaker needs no probe that is gone."""
    change = _reset(desk)
    (probe,) = desk.claim()
    assert state(desk) == "half_open"
    desk.database.move_time("1 day")
    changing = desk.database.connect("trunkline_operator", autocommit=False)
    change(Calls(changing))
    assert [row.job_id for row in impatient(desk.database).reclaim()] == [probe.job]
    getattr(changing, end)()
    assert state(desk) == ("closed" if end == "commit" else "half_open")
    started = len(desk.claim())
    assert started > 1 if end == "commit" else started == 1, "all that wait, or the next probe"


@pytest.mark.parametrize(
    ("end", "closed", "reason"), [("commit", 0, "the probe succeeded"), ("rollback", 1, "reset")]
)
def test_an_operator_closes_nothing_that_a_probe_closes_meanwhile(
    desk: Desk, end: str, closed: int, reason: str
) -> None:
    """The row is read when it is locked: what the probe decided keeps its reason."""
    change = _reset(desk)
    (probe,) = desk.claim()
    ending = desk.database.connect("trunkline_worker", autocommit=False)
    Calls(ending).batch("complete", "w", [probe])
    with ThreadPoolExecutor(max_workers=1) as pool:
        done = pool.submit(change, desk.operator)
        waits = ended_or_blocked(desk.behind, desk.operator.connection, done)
        getattr(ending, end)()
        assert done.result(DEADLINE) == closed
    assert waits == [ending.info.backend_pid]
    found = seen(desk)
    assert (found["state"], found["reason"]) == ("closed", reason)
