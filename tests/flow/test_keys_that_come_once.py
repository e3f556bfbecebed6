"""Keys that have a job or two and then none: very many buckets, most of them without jobs."""

from bisect import bisect
from uuid import UUID

import pytest

from tests.flow.conftest import Desk
from tests.flow.test_many_keys import keyed
from tests.flow.test_woken import sleep
from tests.support.ear import Ear
from tests.support.internals import flow

# A claim takes about as many buckets.
MOST = 200
KEYS = 450


def test_a_claim_that_is_cut_short_is_gone_on_with(desk: Desk) -> None:
    """The next one looks behind it, and not once more over all that the last one left empty."""
    keyed(desk, KEYS, concurrency=1)
    ring, met = flow.open_buckets(desk.behind), 0
    begin: int | None = None
    while jobs := desk.claimed(1000):
        taken = flow.buckets_of_running(desk.behind, jobs)
        begin = ring.index(min(taken)) if begin is None else begin
        arc = {ring[(begin + met + step) % KEYS] for step in range(len(taken))}
        assert taken == arc, "the claim went on where the last one ended"
        met += len(taken)
        assert len(taken) >= MOST or met == KEYS
    assert met == KEYS


def test_the_next_claim_begins_where_the_last_one_was_cut_short(desk: Desk) -> None:
    """Not where that one began: what it left empty would be walked over by every claim."""
    keyed(desk, KEYS, concurrency=1)
    ring = flow.open_buckets(desk.behind)
    taken = flow.buckets_of_running(desk.behind, desk.claimed(1000))
    after = flow.begin_turn(desk.behind, 1).after
    assert ring[bisect(ring, after) % KEYS] not in taken
    assert ring[bisect(ring, after) - 1] in taken


def test_a_sleeping_worker_is_notified_that_there_may_be_more(desk: Desk) -> None:
    """Its claim came back with less than it asked for, which otherwise means that this was all."""
    keyed(desk, KEYS, concurrency=1)
    sleep(desk)
    ear = Ear(desk.database)
    left = KEYS
    while jobs := desk.claimed(1000):
        left -= len(jobs)
        assert ear.heard() == (["default"] if left else []), f"{left} are left"
    assert left == 0


@pytest.mark.parametrize("limit", [1, 1000])
def test_buckets_without_jobs_do_not_hide_one_that_has_some(desk: Desk, limit: int) -> None:
    """They stay listed for seconds, and after a burst there are more than a claim looks at."""
    keyed(desk, 15 * MOST, concurrency=1)
    while attempts := desk.claim(1000):
        desk.end(attempts)
    assert len(flow.open_buckets(desk.behind)) == 15 * MOST, "nobody has swept yet"
    for key in ("7", "77", "777", "1777", "2777"):
        jobs: list[UUID] = desk.enqueue(1, payload={"key": key})
        assert desk.claimed(limit) == jobs
