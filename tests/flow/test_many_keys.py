"""Many keys with limits of their own: at which of them claims look."""

from itertools import combinations

from tests.flow.conftest import Desk

KEYS = 500
CLAIMS = 60
# As many claims as have jobs that still run.
NEAR = 8
# Of the ring. Eight steps of the golden section come no closer than a twelfth; a claim of one job
# takes it from one of the first sixteen gates that it meets, which are half of that.
FAR = 0.03


def keyed(desk: Desk, keys: int, **parts: int) -> None:
    desk.limit("key/{key}", **parts).task("key/{key}")
    jobs = [{"task": "work", "payload": {"key": str(key)}} for key in range(keys)]
    assert len(desk.producer.enqueue_many(jobs)) == keys


def test_claims_look_far_from_where_those_before_them_did(desk: Desk) -> None:
    """Where jobs still run, slots are taken, and to look there is in vain."""
    keyed(desk, KEYS, concurrency=1)
    places = []
    for _ in range(CLAIMS):
        (job,) = desk.claimed(1)
        gate = desk.behind.execute(
            "select need[5] from trunkline_internal.running where job_id = %s", (job,)
        ).fetchone()
        assert gate is not None
        places.append(gate[0] / 2**64)
    for start in range(CLAIMS - NEAR):
        pairs = combinations(places[start : start + NEAR], 2)
        distances = [min((one - other) % 1, (other - one) % 1) for one, other in pairs]
        assert min(distances) > FAR
