"""A limit that counts who runs at once from now on counts those who do already."""

import threading

from tests.flow.conftest import Desk
from tests.flow.test_grants import acquire, settle
from tests.support.calls import Calls
from tests.support.internals import rows
from tests.support.waiting import until_blocked


def test_a_running_job_already_holds_a_slot(desk: Desk) -> None:
    """I6: otherwise as many again would be started beside them."""
    desk.limit("api", requests_per_minute=100).task("api")
    desk.enqueue(6)
    first = desk.claim(3)
    desk.limit("api", concurrency=2)
    assert desk.bucket("api")["in_use"] == 3
    assert desk.claimed() == []
    desk.end(first[:1])
    assert desk.claimed() == []
    desk.end(first[1:2])
    assert len(desk.claimed()) == 1
    assert desk.bucket("api")["in_use"] == 2
    assert desk.bucket("api")["requests_of_minute"] == 4, "nobody is charged twice"


def test_of_each_key_those_that_run_count_for_it(desk: Desk) -> None:
    desk.limit("key/{key}", requests_per_minute=100).task("key/{key}")
    desk.enqueue(2, payload={"key": "a"})
    desk.enqueue(1, payload={"key": "b"})
    assert len(desk.claimed()) == 3
    desk.limit("key/{key}", concurrency=2)
    desk.enqueue(3, payload={"key": "a"})
    desk.enqueue(3, payload={"key": "b"})
    assert len(desk.claimed()) == 1
    assert [desk.bucket(f"key/{key}")["in_use"] for key in "ab"] == [2, 2]


def test_a_limit_of_a_filled_in_name_counts_jobs_that_run_under_the_one_with_keys(
    desk: Desk,
) -> None:
    desk.limit("key/{key}", requests_per_minute=100).task("key/{key}")
    desk.enqueue(2, payload={"key": "a"})
    assert len(desk.claimed()) == 2
    desk.limit("key/a", concurrency=2)
    desk.enqueue(1, payload={"key": "a"})
    assert desk.claimed() == []


def test_open_grants_hold_a_slot_too(desk: Desk) -> None:
    """One that a job with a slot of its own has asked for does not hold another."""
    desk.limit("api", requests_per_minute=100).task("api")
    desk.enqueue(2)
    (attempt,) = desk.claim(1)
    assert acquire(desk, attempt=attempt).granted
    outside = acquire(desk)
    assert outside.granted
    desk.limit("api", concurrency=2)
    assert desk.bucket("api")["in_use"] == 2
    assert desk.claimed() == []
    settle(desk, outside.grant_id)
    assert len(desk.claimed()) == 1


def test_a_claim_that_is_under_way_is_waited_for(desk: Desk) -> None:
    """It has counted nobody, and what it starts is seen when it has committed."""
    desk.limit("api", requests_per_minute=100).task("api")
    desk.enqueue(5)
    worker = Calls(desk.database.connect("trunkline_worker"))
    worker.connection.autocommit = False
    assert len(worker.claim("w", 2).attempts) == 2
    change = threading.Thread(target=desk.limit, args=("api",), kwargs={"concurrency": 2})
    change.start()
    try:
        until_blocked(desk.behind, desk.operator.connection.info.backend_pid)
    finally:
        worker.connection.commit()
        change.join(timeout=300)
    assert not change.is_alive()
    assert desk.bucket("api")["in_use"] == 2
    assert desk.claimed() == []


def test_a_changed_concurrency_adds_no_holder_again(desk: Desk) -> None:
    desk.limit("api", concurrency=5).task("api")
    desk.enqueue(3)
    assert len(desk.claimed(2)) == 2
    before = rows.count(desk.behind, "adjustments")
    desk.limit("api", concurrency=2)
    assert rows.count(desk.behind, "adjustments") == before
    assert desk.claimed() == []
