"""Many keys with limits of their own: at which of them claims look, and what those have left."""

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.flow.conftest import Desk
from tests.flow.test_grants import acquire
from tests.support.internals import flow

KEYS = 500
JOBS = 10


def keyed(desk: Desk, keys: int, each: int = 1, **parts: int) -> None:
    desk.limit("key/{key}", **parts).task("key/{key}")
    jobs = [{"task": "work", "payload": {"key": str(key)}} for key in range(keys)] * each
    assert len(desk.producer.enqueue_many(jobs)) == keys * each


def test_claims_go_round_the_keys(desk: Desk) -> None:
    """Where jobs have just been started, slots are taken, and to look there is in vain."""
    keyed(desk, KEYS, each=2, concurrency=1)
    ring = flow.open_buckets(desk.behind)
    assert len(ring) == KEYS
    met: list[int] = []
    for _ in range(KEYS // JOBS):
        taken = flow.buckets_of_running(desk.behind, desk.claimed(JOBS))
        assert len(taken) == JOBS
        begin = ring.index(min(taken)) if not met else (ring.index(met[-1]) + 1) % KEYS
        arc = [ring[(begin + step) % KEYS] for step in range(JOBS)]
        assert taken == set(arc), "the claim went on where the last one ended"
        met += arc
    assert sorted(met) == ring
    assert desk.claimed(JOBS) == [], "each key has its one slot taken"


@pytest.mark.parametrize("concurrency", [1, 5000])
def test_a_large_claim_reads_as_many_keys_as_the_last_one_needed(
    desk: Desk, concurrency: int
) -> None:
    keyed(desk, KEYS, concurrency=concurrency)
    assert flow.begin_turn(desk.behind, 100).buckets == 0, "no claim has scanned yet"
    assert len(desk.claimed(100)) == 100
    assert flow.begin_turn(desk.behind, 100).buckets == 100
    assert flow.begin_turn(desk.behind, 10).buckets == 10


def test_both_ways_to_compute_the_room_of_keys_agree(desk: Desk) -> None:
    """The fast path for limits of slots alone returns the same as the general one."""
    desk.limit("key/{key}", concurrency=2).task("key/{key}")
    for key, jobs in {"one": 1, "full": 2, "ended": 2, "held": 1, "lent": 1}.items():
        desk.enqueue(jobs, payload={"key": key})
        attempts = desk.claim()
        assert len(attempts) == jobs
        if key == "ended":
            desk.end(attempts)
    assert acquire(desk, "key/{key}", keys={"key": "lent"}).granted
    observed = ("key/{key}", Jsonb({"retry_after": 30}), Jsonb({"key": "held"}))
    assert desk.worker.value("select trunkline.observe_limit(%s, %s, %s)", *observed) is not None
    desk.enqueue(payload={"key": "none"})
    alone = flow.free_slots(desk.behind)
    assert alone == flow.room(desk.behind)
    assert {name: left for name, (left, _) in alone.items()} == {
        "key/none": 2,
        "key/one": 1,
        "key/ended": 2,
    }


# By what a limit counts beside slots: whether it is asked and charged by the shorter way.
@pytest.mark.parametrize(
    ("parts", "alone"),
    [
        ({"concurrency": 1}, True),
        ({"concurrency": 5000}, True),
        ({"concurrency": 1, "depth_limit": 10}, True),
        ({"concurrency": 1, "requests_per_minute": 10}, False),
        ({"concurrency": 1, "tokens_per_hour": 10}, False),
        ({"concurrency": 1, "quota": 10, "quota_unit": "pages"}, False),
        ({"concurrency": 1, "breaker_failures": 3}, False),
        ({"requests_per_minute": 10}, False),
    ],
)
def test_which_limits_count_slots_alone(desk: Desk, parts: dict[str, Any], alone: bool) -> None:
    desk.limit("api", **parts)
    assert flow.counts_slots_only(desk.behind, "api") is alone


def test_share_groups_do_not_count_slots_only(desk: Desk) -> None:
    """Which of their keys is next depends on all of them."""
    desk.limit("fair:share/{tenant}", concurrency=3)
    assert flow.share_group(desk.behind, "fair:share/{tenant}") == "fair:share"
    assert flow.counts_slots_only(desk.behind, "fair:share/{tenant}") is False


def test_both_ways_to_charge_store_the_same(desk: Desk) -> None:
    """The fast path for limits of slots alone stores the same as the general one."""
    # The second counts something, too, of which there is always enough.
    desk.limit("slots", concurrency=3).limit("more", concurrency=3, requests_per_hour=10**9)
    kept = []
    for name in ("slots", "more"):
        desk.task(name, task=name)
        desk.enqueue(6, task=name, queue=name)
        first = desk.worker.claim("w", 10, queues=[name]).attempts
        assert len(first) == 3
        assert not acquire(desk, name).granted, "refused, which is counted"
        desk.end(first[:2])
        grant = acquire(desk, name)
        assert grant.granted
        second = desk.worker.claim("w", 10, queues=[name]).attempts
        assert len(second) == 1
        ((revision, holders, *rest),) = flow.bucket_states(desk.behind, name)
        known = {first[2].job: "first", grant.grant_id: "grant", second[0].job: "second"}
        kept.append((revision, sorted(known[holder] for holder in holders), rest))
    assert kept[0] == kept[1]
    assert kept[0][1] == ["first", "grant", "second"]
    assert kept[0][2] == [1, True, None, True, True]


def test_no_key_lets_small_jobs_overtake_a_large_one(desk: Desk) -> None:
    """Each key's jobs start in their order, also when a claim finds jobs of several keys."""
    desk.limit("key/{key}", concurrency=100, tokens_per_minute=10).task("key/{key}")
    jobs = [
        {"task": "work", "payload": {"key": key}, "cost": {"tokens": 6 if place < 2 else 1}}
        for place in range(30)
        for key in "ab"
    ]
    created = [row.job_id for row in desk.producer.enqueue_many(jobs)]
    assert set(desk.claimed()) == set(created[:2]), "the second of each key waits for room"
