"""Claims of a wide limit charge it side by side, and still never pass it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.flow.conftest import Desk
from tests.support.calls import Calls
from tests.support.internals import rows

# The smallest limit of which a claim of two may take its part without holding it.
MOST = 32
PARTS = ("concurrency", "requests_per_minute", "requests_per_hour", "tokens_per_minute")


@contextmanager
def open_claim(desk: Desk, limit: int) -> Iterator[list[object]]:
    """A claim whose transaction has not ended."""
    connection = desk.database.connect("trunkline_worker", autocommit=False)
    yield list(Calls(connection).claim("w", limit).jobs)
    connection.commit()


def wide(desk: Desk, part: str, most: int = MOST) -> Desk:
    cost = {"tokens": 1} if part.startswith("tokens") else {}
    return desk.limit("api", **{part: most}).task("api", cost=cost)


@pytest.mark.parametrize("part", PARTS)
def test_a_claim_does_not_wait_for_another_of_the_same_limit(desk: Desk, part: str) -> None:
    wide(desk, part)
    desk.enqueue(10)
    with open_claim(desk, 2) as first:
        second = desk.claimed(2)
        assert len(first) == len(second) == 2
        assert not set(first) & set(second)


def test_a_claim_of_more_than_its_part_holds_the_limit(desk: Desk) -> None:
    """Nobody knows what it charges before it has ended, so others pass it by."""
    wide(desk, "concurrency")
    desk.enqueue(40)
    with open_claim(desk, 3) as first:
        assert len(first) == 3
        assert desk.claimed(2) == []
    assert len(desk.claimed(2)) == 2


@pytest.mark.parametrize("part", PARTS)
def test_all_that_are_open_at_once_take_no_more_than_half(desk: Desk, part: str) -> None:
    """Eight at once, for a sixteenth each: what they see of each other is nothing."""
    wide(desk, part)
    desk.enqueue(100)
    with ExitStack() as stack:
        taken = [len(stack.enter_context(open_claim(desk, 2))) for _ in range(8)]
        assert taken == [2] * 8
        assert desk.claimed(2) == [], "no place is left for a ninth"
    rest = []
    while jobs := desk.claimed(2):
        rest += jobs
    assert len(rest) == MOST - 16


@pytest.mark.parametrize("part", PARTS)
def test_what_was_charged_side_by_side_counts(desk: Desk, part: str) -> None:
    wide(desk, part)
    desk.enqueue(100)
    assert len([job for _ in range(3) for job in desk.claimed(2)]) == 6
    bucket = desk.bucket("api")
    used = {
        "concurrency": bucket["in_use"],
        "requests_per_minute": bucket["requests_of_minute"],
        "requests_per_hour": bucket["requests_of_hour"],
        "tokens_per_minute": bucket["tokens_of_minute"],
    }
    assert used[part] == 6
    assert len(desk.claimed()) == MOST - 6
    assert desk.claimed() == []


def test_a_slot_taken_side_by_side_is_free_again_when_its_job_ends(desk: Desk) -> None:
    wide(desk, "concurrency")
    desk.enqueue(200)
    first = [attempt for _ in range(4) for attempt in desk.claim(2)]
    assert len(desk.claim()) == MOST - 8
    desk.end(first)
    assert desk.bucket("api")["in_use"] == MOST - 8
    assert len(desk.claim()) == 8


def test_adjustments_are_added_to_the_state_before_they_grow_many(desk: Desk) -> None:
    wide(desk, "concurrency", 1000)
    desk.enqueue(100)
    for _ in range(30):
        assert len(desk.claim(1)) == 1
    assert rows.count(desk.behind, "bucket_states") == 1
    assert desk.bucket("api")["in_use"] == 30
    desk.operator.value("select trunkline.sweep_buckets()")
    assert rows.count(desk.behind, "adjustments") <= 9
    assert desk.bucket("api")["in_use"] == 30


def test_a_job_that_holds_a_slot_for_hours_stays_counted(desk: Desk) -> None:
    """What nobody counts in is swept after two hours; not what living jobs hold."""
    wide(desk, "concurrency")
    desk.enqueue(MOST + 8)
    first = desk.claim(2)
    desk.database.move_time("3 hours")
    desk.operator.value("select trunkline.sweep_buckets()")
    assert len(desk.claim()) == MOST - 2
    desk.end(first[:1])
    assert len(desk.claim()) == 1


def test_a_pause_of_the_provider_applies_to_claims_that_share_a_bucket(desk: Desk) -> None:
    wide(desk, "requests_per_minute")
    desk.enqueue(10)
    assert len(desk.claim(2)) == 2
    desk.set_limit("api", {"requests_per_minute": MOST}, "maintenance")
    assert desk.claim(2) == []
    desk.set_limit("api", {"requests_per_minute": MOST}, "active")
    assert len(desk.claim(2)) == 2


@pytest.mark.parametrize("most", [4, 1000])
def test_priorities_hold_across_keys(desk: Desk, most: int) -> None:
    """Whichever of the keys is looked at first; of a wide limit as of a narrow one."""
    desk.limit("key/{key}", concurrency=most).task("key/{key}")
    urgent = []
    for key in "abcdefgh":
        desk.enqueue(3, payload={"key": key}, priority=1)
        urgent += desk.enqueue(1, payload={"key": key}, priority=5)
    assert set(desk.claimed(8)) == set(urgent)
