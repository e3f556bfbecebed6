"""Queues that age: low priorities get their turn, and bulk stays behind."""

from uuid import UUID

import pytest

from tests.flow.conftest import Desk


def age(desk: Desk, *, ageing: bool) -> None:
    desk.operator.value("select trunkline.age_queue('default', %s)", ageing)


def claim_until(desk: Desk, wanted: list[UUID], most: int) -> list[UUID]:
    """One at a time, until one of these comes."""
    found: list[UUID] = []
    while len(found) < most and not set(found) & set(wanted):
        found += desk.claimed(1)
    return found


def test_without_ageing_the_highest_always_goes_first(desk: Desk) -> None:
    """I9: within a queue, work of low priority never delays work of higher priority."""
    desk.task()
    high = desk.enqueue(160, priority=10)
    desk.enqueue(3, priority=0)
    age(desk, ageing=True)
    age(desk, ageing=False)
    assert [desk.claimed(1)[0] for _ in range(150)] == high[:150]


def test_with_ageing_the_lowest_is_not_starved_and_bulk_is_not_first(desk: Desk) -> None:
    """One of sixteen claims begins from below: in 500 it happens for sure."""
    desk.task()
    high = desk.enqueue(520, priority=10)
    low = desk.enqueue(3, priority=0)
    bulk = desk.enqueue(3, priority=-10)
    age(desk, ageing=True)
    found = claim_until(desk, low, 500)
    assert found[-1] == low[0]
    assert found[:-1] == high[: len(found) - 1]
    found = claim_until(desk, low + bulk, 500)
    assert found[-1] == low[1]


def test_with_ageing_bulk_has_its_order_too(desk: Desk) -> None:
    desk.task()
    less = desk.enqueue(520, priority=-10)
    least = desk.enqueue(3, priority=-50)
    age(desk, ageing=True)
    found = claim_until(desk, least, 500)
    assert found[-1] == least[0]
    assert found[:-1] == less[: len(found) - 1]


@pytest.mark.parametrize("limits", [("api",), ("api", "slot")], ids=["one", "several"])
def test_with_ageing_limited_work_of_low_priority_is_not_starved(
    desk: Desk, limits: tuple[str, ...]
) -> None:
    """All of it waits in its limits' own lanes, where high priorities never end either."""
    desk.limit("api", requests_per_minute=1000).limit("slot", concurrency=1)
    desk.task(*limits)
    high = desk.enqueue(520, priority=10)
    low = desk.enqueue(3, priority=0)
    bulk = desk.enqueue(3, priority=-10)
    age(desk, ageing=True)
    found: list[UUID] = []
    while len(found) < 500 and not set(found) & set(low + bulk):
        running = desk.claim(1)
        found += [attempt.job for attempt in running]
        desk.end(running)
    assert found[-1] == low[0]
    assert found[:-1] == high[: len(found) - 1]


def test_with_ageing_low_priority_gets_its_part_of_a_tight_limit(desk: Desk) -> None:
    """Beside work that is not limited, too: the limited one is claimed when there is room."""
    desk.limit("api", requests_per_minute=4).task("api").task(task="free")
    high = desk.enqueue(800, priority=10)
    desk.enqueue(3, priority=5, task="free")
    low = desk.enqueue(3, priority=0)
    age(desk, ageing=True)
    found: list[UUID] = []
    for _ in range(190):
        found += [job for _ in range(5) for job in desk.claimed(1)]
        if set(found) & set(low):
            break
        desk.database.move_time("63 seconds")
    # By lot, one of sixteen claims: in 700 it happens for sure.
    assert low[0] in found
    assert [job for job in found if job in high] == high[: len([j for j in found if j in high])]


def test_the_view_of_queues_shows_ageing(desk: Desk) -> None:
    age(desk, ageing=True)
    told = "select ageing from trunkline.queues where queue = 'default'"
    assert desk.operator.value(told) is True
    age(desk, ageing=False)
    assert desk.operator.value(told) is False
