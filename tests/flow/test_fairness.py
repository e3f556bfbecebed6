"""A fair share per tenant, whatever the others have waiting; and priorities that do not starve."""

import random
from collections import Counter
from typing import Any

import pytest

from tests.flow.conftest import Desk
from tests.support.calls import Attempt

POOL = "fair:exports/{tenant}"


class Slots:
    """Workers with so many slots in all: as soon as a job ends, another is claimed."""

    def __init__(self, desk: Desk, count: int) -> None:
        self.desk = desk
        self.count = count
        self.running: list[tuple[Attempt, Any]] = []

    def fill(self) -> list[Any]:
        """Claim for the slots that are free; tell whose jobs they got."""
        wanted = self.count - len(self.running)
        rows = self.desk.worker.claim("w", wanted).rows if wanted else []
        started = [(Attempt(row.job_id, row.attempt, "w"), row) for row in rows]
        self.running += started
        return [row.tenant for _, row in started]

    def end(self, place: int = 0) -> Any:
        """End one of the running jobs; tell whose it was."""
        attempt, row = self.running.pop(place)
        self.desk.end([attempt])
        return row.tenant

    def holds(self) -> Counter[Any]:
        """How many slots each tenant has."""
        return Counter(row.tenant for _, row in self.running)


def crowd(desk: Desk, tenant: str, count: int) -> None:
    """Enqueue so many jobs of a tenant."""
    for begin in range(0, count, 1000):
        desk.enqueue(min(1000, count - begin), tenant=tenant)


@pytest.mark.parametrize("most", [1, 2, 9])
def test_the_jobs_of_one_tenant_start_in_their_order(desk: Desk, most: int) -> None:
    desk.limit(POOL).task(POOL)
    jobs = desk.enqueue(9, tenant="a")
    crowd(desk, "b", 9)
    started: list[Any] = []
    while rows := desk.worker.claim("w", most).rows:
        started += [row.job_id for row in rows if row.tenant == "a"]
    assert started == jobs


@pytest.mark.slow
def test_ten_thousand_jobs_of_one_tenant_delay_anothers_by_one_job_per_slot_at_most(
    desk: Desk,
) -> None:
    """TA-19: counted in jobs that end between its enqueue and its own start."""
    desk.limit(POOL).task(POOL)
    crowd(desk, "large", 10_000)
    for slots in (5, 2, 1):
        place = Slots(desk, slots)
        for visit in range(6):
            # Every slot is the large one's, as it is when nobody else has been there for a while.
            while place.holds()["large"] < slots:
                while place.running:
                    place.end()
                place.fill()
            crowd(desk, f"small-{visit % 2}", 1)
            ended = 0
            while not any(started.startswith("small") for started in place.fill()):
                assert ended < slots, f"visit {visit} with {slots} slots"
                place.end()
                ended += 1
            assert place.holds()["large"] == slots - 1
        while place.running:
            place.end()


@pytest.mark.slow
def test_ten_thousand_jobs_do_not_fill_a_claim_of_many(desk: Desk) -> None:
    """TA-19: of slots that come free together, one each is for those who have a single job."""
    desk.limit(POOL).task(POOL)
    crowd(desk, "large", 10_000)
    place = Slots(desk, 5)
    for visit in range(4):
        while place.running:
            place.end()
        assert place.fill() == ["large"] * 5
        for tenant in range(visit):
            crowd(desk, f"small-{tenant}", 1)
        while place.running:
            place.end()
        started = place.fill()
        assert sorted(set(started) - {"large"}) == [f"small-{tenant}" for tenant in range(visit)]


@pytest.mark.parametrize("slots", [1, 2, 3])
def test_tenants_take_turns(desk: Desk, slots: int) -> None:
    """TA-19: round robin, although all of one tenant's jobs came before the others'."""
    desk.limit(POOL).task(POOL)
    for tenant in "abc":
        crowd(desk, tenant, 12)
    place = Slots(desk, slots)
    started = place.fill()
    while len(started) < 24:
        place.end()
        started += place.fill()
    shares = Counter(started)
    assert max(shares.values()) - min(shares.values()) <= 1, started
    # At any time, not only in the end.
    assert set(started[:6]) == set("abc"), started


def test_a_tenant_holds_two_of_three_slots_while_others_wait(desk: Desk) -> None:
    """EX-19."""
    desk.limit(POOL, share_cap=2).task(POOL)
    crowd(desk, "a", 30)
    place = Slots(desk, 3)
    assert place.fill() == ["a", "a", "a"], "nobody else waits"
    crowd(desk, "b", 30)
    draw = random.Random(1)
    for _ in range(3):
        place.end()
        place.fill()
    seen: set[tuple[int, int]] = set()
    for _ in range(20):
        held = place.holds()
        assert max(held.values()) <= 2, held
        seen.add((held["a"], held["b"]))
        place.end(draw.randrange(3))
        place.fill()
    assert seen == {(1, 2), (2, 1)}


def test_a_cap_is_no_reason_to_leave_slots_empty(desk: Desk) -> None:
    """EX-19: it counts only while others wait."""
    desk.limit(POOL, share_cap=2).task(POOL)
    crowd(desk, "a", 9)
    crowd(desk, "b", 1)
    place = Slots(desk, 3)
    assert sorted(place.fill()) == ["a", "a", "b"]
    while place.holds()["b"]:
        place.end([row.tenant for _, row in place.running].index("b"))
        place.fill()
    assert place.holds() == {"a": 3}


def test_weights_are_shares_of_the_slots(desk: Desk) -> None:
    """A limit of a filled-in name goes before the one with keys; this one weighs three times."""
    desk.limit(POOL).limit("fair:exports/gold", weight=3).task(POOL)
    crowd(desk, "plain", 60)
    crowd(desk, "gold", 60)
    place = Slots(desk, 8)
    draw = random.Random(2)
    assert Counter(place.fill()) == {"gold": 6, "plain": 2}
    for _ in range(30):
        place.end(draw.randrange(8))
        place.fill()
        assert place.holds() == {"gold": 6, "plain": 2}


def test_the_smallest_weight_gets_its_turn_with_a_single_slot(desk: Desk) -> None:
    desk.limit(POOL).limit("fair:exports/gold", weight=9).task(POOL)
    crowd(desk, "gold", 30)
    crowd(desk, "plain", 30)
    place = Slots(desk, 1)
    started = place.fill()
    while len(started) < 20:
        place.end()
        started += place.fill()
    assert Counter(started)["plain"] >= 2, started


def test_priorities_go_before_fairness(desk: Desk) -> None:
    desk.limit(POOL).task(POOL)
    desk.enqueue(3, tenant="a", priority=5)
    desk.enqueue(3, tenant="b")
    assert [row.tenant for row in desk.worker.claim("w", 4).rows] == ["a", "a", "a", "b"]


def test_an_ageing_queue_serves_low_priorities_now_and_then(desk: Desk) -> None:
    """One claim of sixteen, by lot."""
    desk.task()
    # The same draws every time.
    desk.worker.connection.execute("select setseed(0.5)")
    desk.operator.connection.execute("select trunkline.age_queue('default', true)")
    claims = 800
    for priority in (9, 5, 0):
        crowd_of_priority(desk, priority, claims)
    found: Counter[int] = Counter()
    for _ in range(claims):
        rows = desk.worker.claim("w", 1).rows
        found[rows[0].priority] += 1
        desk.end([Attempt(rows[0].job_id, rows[0].attempt, "w")])
    # Expected are 50 with a deviation of 7.
    assert 30 <= found[0] <= 70, found
    assert found[5] == 0, "the other way round, so from the lowest"
    assert found[9] == claims - found[0]


def test_bulk_stays_behind_what_is_not_in_an_ageing_queue(desk: Desk) -> None:
    """Priorities below zero are served by what is left, the lowest of them now and then."""
    desk.task()
    desk.operator.connection.execute("select trunkline.age_queue('default', true)")
    # The same draws every time.
    desk.worker.connection.execute("select setseed(0.5)")
    crowd_of_priority(desk, 1, 150)
    for priority in (-1, -9):
        crowd_of_priority(desk, priority, 400)
    order: list[int] = []
    for _ in range(550):
        rows = desk.worker.claim("w", 1).rows
        order.append(rows[0].priority)
        desk.end([Attempt(rows[0].job_id, rows[0].attempt, "w")])
    assert set(order[:150]) == {1}, "never across zero"
    # Expected are 25 with a deviation of 5.
    assert 10 <= Counter(order[150:])[-9] <= 40


def test_a_queue_that_does_not_age_serves_strictly_by_priority(desk: Desk) -> None:
    desk.task()
    desk.operator.connection.execute("select trunkline.age_queue('default', true)")
    desk.operator.connection.execute("select trunkline.age_queue('default', false)")
    for priority in (0, 5):
        crowd_of_priority(desk, priority, 150)
    found = [desk.worker.claim("w", 1).rows[0].priority for _ in range(150)]
    assert set(found) == {5}


def crowd_of_priority(desk: Desk, priority: int, count: int) -> None:
    desk.enqueue(count, priority=priority)
