"""A claimer that keeps its place loses nothing that commits late.

The rule is in next_position; the scenes are what it was made for. Transactions of other tests on
the same server are in its way too, so a position may remember more than the test's own.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest

from tests.concurrency.scenario import Outcome, Scene, naive, play
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.internals import breaks, jobs
from tests.support.waiting import backend, until_blocked

# Lanes are numbered twice the priority.
LANE = "default/{}"


@pytest.fixture
def queue(database: Database) -> Database:
    """Without the guard: its work would spread the claims out in time."""
    Calls(database.connect("trunkline_producer")).register("work")
    return database


def _left(database: Database) -> set[UUID]:
    """Return all jobs that wait: nothing in these scenes is due much later."""
    return set(jobs.waiting_in_order(database.superuser()))


def _judge(database: Database, outcome: Outcome) -> set[UUID]:
    """Check what every scene must show; return what a full look had to find."""
    assert len(outcome.claimed) == len(set(outcome.claimed))
    assert set(outcome.claimed) <= outcome.committed
    assert outcome.missing == _left(database)
    assert outcome.missing <= outcome.touched, "a job that nobody touched stayed behind"
    calls = Calls(database.connect("trunkline_worker"))
    assert set(calls.claim("full", 10000).jobs) == outcome.missing
    assert _left(database) == set()
    return outcome.missing


def _accepted(position: dict[str, Any], priority: int = 0) -> int:
    lane: list[int] = position["lanes"][LANE.format(priority * 2)]
    return lane[0]


@pytest.mark.slow
def test_nothing_stays_behind_but_what_rolled_back_claims_left(queue: Database) -> None:
    """Invariants 1 and 3, section 3 of the design: twelve late producers, a transaction of 10 s."""
    outcome = play(queue, Scene(seconds=10, rolled_back_claims=True))
    assert len(outcome.committed) > 500
    _judge(queue, outcome)
    bound = jobs.last_sequence(queue.superuser())
    assert _accepted(outcome.position) > bound * 0.9, "the position must have moved"


def test_a_naive_position_loses_jobs_in_that_scene(queue: Database) -> None:
    """So the scene is sharp: starting after the last one seen leaves late commits behind."""
    outcome = play(queue, Scene(seconds=2), adjust=naive)
    assert outcome.missing
    assert outcome.missing == _left(queue)
    calls = Calls(queue.connect("trunkline_worker"))
    assert set(calls.claim("full", 10000).jobs) == outcome.missing


@pytest.mark.parametrize(
    "scene",
    [
        Scene(seconds=2.5, priorities=(0, 5, -5, 9), limit=5),
        Scene(seconds=2.5, delays=("0", "10 ms", "50 ms", "200 ms")),
        Scene(seconds=2.5, priorities=(0, 3), new_lane=20),
    ],
    ids=["several lanes", "promotions", "a lane that appears later"],
)
def test_nothing_stays_behind_in_other_scenes(queue: Database, scene: Scene) -> None:
    """Invariants 1 and 3: without rolled-back claims a kept position finds everything."""
    assert _judge(queue, play(queue, scene)) == set()


def test_a_commit_after_idle_claims_is_found(queue: Database) -> None:
    """Nothing else happens on the server, so no snapshot's end is past the late transaction."""
    late = Calls(queue.connect("trunkline_producer", autocommit=False))
    worker = Calls(queue.connect("trunkline_worker"))
    job = late.enqueue().job_id
    position: dict[str, Any] | None = {}
    for _ in range(4):
        claim = worker.claim(position=position)
        assert claim.jobs == []
        position = claim.position
    late.connection.commit()
    assert worker.claim(position=position).jobs == [job]


@pytest.mark.parametrize("delay", ["0", "1 ms"])
def test_a_commit_after_others_were_claimed_is_found(queue: Database, delay: str) -> None:
    """The late one drew its number, or its due time, before those that were claimed."""
    late = Calls(queue.connect("trunkline_producer", autocommit=False))
    producer = Calls(queue.connect("trunkline_producer"))
    worker = Calls(queue.connect("trunkline_worker"))
    job = late.enqueue(delay=delay).job_id
    position: dict[str, Any] | None = {}
    for _ in range(5):
        other = producer.enqueue().job_id
        claim = worker.claim(limit=10, position=position)
        assert claim.jobs == [other]
        position = claim.position
    late.connection.commit()
    assert worker.claim(limit=10, position=position).jobs == [job]


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_long_transaction_is_remembered_until_it_ends(queue: Database, end: str) -> None:
    """Past the patience the position goes on; the end of the transaction brings one look back."""
    late = Calls(queue.connect("trunkline_producer", autocommit=False))
    producer = Calls(queue.connect("trunkline_producer"))
    worker = Calls(queue.connect("trunkline_worker"))
    jobs = [late.enqueue().job_id]
    position: dict[str, Any] = {}
    for _ in range(4):
        producer.enqueue()
        claim = worker.claim(limit=10, position=position)
        assert len(claim.jobs) == 1
        assert claim.position is not None
        position = claim.position
        queue.move_time("1 second")
    jobs.append(late.enqueue().job_id)
    assert _accepted(position) > 0
    xid = late.value("select pg_current_xact_id()::text")
    assert position["late"][xid][LANE.format(0)] == 0
    getattr(late.connection, end)()
    claim = worker.claim(limit=10, position=position)
    assert claim.jobs == (jobs if end == "commit" else [])
    assert claim.position is not None
    assert xid not in claim.position.get("late", {})


def test_one_full_scan_may_take_several_claims(queue: Database) -> None:
    """A long transaction with more jobs than one claim takes: its floor moves with the claims."""
    late = Calls(queue.connect("trunkline_producer", autocommit=False))
    producer = Calls(queue.connect("trunkline_producer"))
    worker = Calls(queue.connect("trunkline_worker"))
    jobs = late.fill(25)
    position: dict[str, Any] | None = {}
    for _ in range(4):
        producer.enqueue()
        position = worker.claim(limit=4, position=position).position
        queue.move_time("1 second")
    xid = late.value("select pg_current_xact_id()::text")
    late.connection.commit()
    found: list[UUID] = []
    for _ in range(7):
        claim = worker.claim(limit=4, position=position)
        found += claim.jobs
        position = claim.position
    assert found == jobs
    assert position is not None
    assert xid not in position.get("late", {})


def test_a_full_lane_freezes_neither_itself_nor_those_above(queue: Database) -> None:
    """Coverage counts per lane: claims that end in the middle lane move the two upper ones on."""
    producer = Calls(queue.connect("trunkline_producer"))
    worker = Calls(queue.connect("trunkline_worker"))
    producer.fill(200, priority=0)
    low = producer.fill(20, priority=-5)
    position: dict[str, Any] = {}
    claimed = 0
    for _ in range(10):
        high = producer.enqueue(priority=5).job_id
        claim = worker.claim(limit=11, position=position)
        assert claim.jobs[0] == high
        claimed += len(claim.jobs)
        assert claim.position is not None
        position = claim.position
        queue.move_time("1 second")
    assert claimed == 110
    assert _accepted(position, 5) >= 228
    assert _accepted(position, 0) >= 80
    assert position["lanes"][LANE.format(-10)] == [0]
    rest = worker.claim(limit=1000, position=position)
    assert len(rest.jobs) == 100 + 20
    assert rest.jobs[-20:] == low


def test_a_full_top_lane_hides_no_late_commit_below(queue: Database) -> None:
    """A job that commits late in a lane the claims never reached is found when they do."""
    late = Calls(queue.connect("trunkline_producer", autocommit=False))
    producer = Calls(queue.connect("trunkline_producer"))
    worker = Calls(queue.connect("trunkline_worker"))
    below = [producer.enqueue(priority=-1).job_id]
    position = worker.claim(limit=1, position={}).position
    below = [late.enqueue(priority=-1).job_id]
    below.append(producer.enqueue(priority=-1).job_id)
    producer.fill(30, priority=3)
    for _ in range(3):
        claim = worker.claim(limit=10, position=position)
        assert [row.priority for row in claim.rows] == [3] * 10
        position = claim.position
        queue.move_time("1 second")
    late.connection.commit()
    assert worker.claim(limit=10, position=position).jobs == below


def test_a_job_that_a_rolled_back_claim_promoted_is_found_by_a_full_scan(queue: Database) -> None:
    """Invariant 1: the job is scheduled and due, behind the position on due times."""
    producer = Calls(queue.connect("trunkline_producer"))
    vain = Calls(queue.connect("trunkline_worker", autocommit=False))
    worker = Calls(queue.connect("trunkline_worker"))
    job = producer.enqueue(delay="1 minute").job_id
    queue.move_time("2 minutes")
    assert vain.claim().jobs == [job]
    position: dict[str, Any] | None = {}
    for _ in range(3):
        producer.enqueue()
        claim = worker.claim(limit=10, position=position)
        position = claim.position
        assert len(claim.jobs) == 1
        queue.move_time("1 second")
    vain.connection.rollback()
    assert worker.claim(limit=10).jobs == [job]


def test_a_position_holds_only_for_its_queues(queue: Database) -> None:
    """A position of other queues or of none is no position: the claim looks from the start."""
    producer = Calls(queue.connect("trunkline_producer"))
    worker = Calls(queue.connect("trunkline_worker"))
    position: dict[str, Any] | None = {}
    for _ in range(3):
        producer.enqueue(queue="a")
        position = worker.claim(queues=["a"], position=position).position
    left = producer.enqueue(queue="b").job_id
    assert worker.claim(queues=["a", "b"], position=position).jobs == [left]


def test_a_claim_in_a_transaction_that_wrote_before_keeps_its_position(queue: Database) -> None:
    """Its id is older than the numbers it saw, so it proves nothing about them."""
    late = Calls(queue.connect("trunkline_producer", autocommit=False))
    mixed = Calls(queue.superuser(autocommit=False))
    worker = Calls(queue.connect("trunkline_worker"))
    mixed.connection.execute("select pg_current_xact_id()")
    job = late.enqueue().job_id
    position = mixed.claim(position={}).position
    mixed.connection.commit()
    for _ in range(3):
        claim = worker.claim(position=position)
        assert claim.jobs == []
        position = claim.position
    late.connection.commit()
    assert worker.claim(position=position).jobs == [job]


def test_numbers_drawn_while_a_claim_runs_are_not_covered_by_it(queue: Database) -> None:
    """The claim is stopped after it got its id; whoever draws now has a higher one."""
    superuser = queue.superuser()
    breaks.pause_claims_after_promotion(superuser)
    producer = Calls(queue.connect("trunkline_producer"))
    worker = Calls(queue.connect("trunkline_worker"))
    producer.enqueue(delay="1 minute")
    queue.move_time("2 minutes")
    superuser.execute("select pg_advisory_lock(1)")
    with ThreadPoolExecutor() as pool:
        claiming = pool.submit(worker.claim, limit=10, position={})
        until_blocked(superuser, backend(worker.connection))
        late = Calls(queue.connect("trunkline_producer", autocommit=False))
        job = late.enqueue().job_id
        seen = producer.enqueue().job_id
        superuser.execute("select pg_advisory_unlock(1)")
        claim = claiming.result(30)
    assert seen in claim.jobs
    assert job not in claim.jobs
    position = claim.position
    # The late transaction is the oldest that runs, its id is past that of the claim: with nothing
    # older in the way, what the claim covered is accepted at once.
    for _ in range(3):
        claim = worker.claim(limit=10, position=position)
        assert claim.jobs == []
        position = claim.position
    late.connection.commit()
    assert worker.claim(limit=10, position=position).jobs == [job]


def test_idle_claims_cost_no_transaction_id(queue: Database) -> None:
    """A thousand workers that poll an empty queue must not use up the ids of the server."""
    worker = Calls(queue.connect("trunkline_worker"))
    producer = Calls(queue.connect("trunkline_producer"))
    producer.fill(3)
    position: dict[str, Any] | None = {}
    for _ in range(5):
        position = worker.claim(limit=3, position=position).position
    worker.connection.autocommit = False
    for _ in range(10):
        position = worker.claim(position=position).position
        assert worker.value("select pg_current_xact_id_if_assigned()::text") is None
        worker.connection.commit()
