"""Bulk changes beside claims and beside each other: nothing is lost, done twice or half done."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.operate.conftest import Scene, dsn_as
from tests.support.waiting import backend, together, until_blocked
from trunkline.operate import BulkProgress, JobFilter, SyncOperator


def test_a_job_that_is_being_claimed_is_asked_to_stop(scene: Scene) -> None:
    scene.calls.fill(3)
    claimer = scene.database.connect("trunkline_worker", autocommit=False)
    claimer.execute("select from trunkline.claim('w', p_limit => 2)")
    session = scene.database.connect("trunkline_operator")

    def cancel() -> Any:
        query = """select outcomes from trunkline.cancel_jobs('{"task": "work"}')"""
        return session.execute(query).fetchone()

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(cancel)
        until_blocked(scene.calls.connection, backend(session))
        claimer.commit()
        assert answer.result() == ({"cancelled": 1, "requested": 2},)
    assert scene.states() == {"cancelled": 1, "running": 2}


def test_a_dead_letter_that_is_being_discarded_is_not_acknowledged(scene: Scene) -> None:
    first, *others = scene.bury(3)
    discarder = scene.database.connect("trunkline_operator", autocommit=False)
    discarder.execute("select trunkline.discard(%s)", (first,))
    session = scene.database.connect("trunkline_operator")

    def acknowledge() -> Any:
        query = """select outcomes, job_ids from trunkline.acknowledge_jobs('{"task": "work"}')"""
        return session.execute(query).fetchone()

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(acknowledge)
        until_blocked(scene.calls.connection, backend(session))
        discarder.commit()
        outcomes, acknowledged = answer.result()
    assert outcomes == {"acknowledged": 2, "gone": 1}
    assert sorted(acknowledged) == sorted(others)


def test_two_operators_replay_each_dead_letter_once(scene: Scene) -> None:
    dead = scene.bury(200)

    def replay() -> BulkProgress:
        with SyncOperator(dsn_as(scene.database, "operator")) as operator:
            *_, end = operator.jobs.retry_matching(JobFilter(queue="burying"), batch=50)
            return end

    ends = together([replay, replay])
    assert sum(end.outcomes.get("replayed", 0) for end in ends) == len(dead)
    assert all(set(end.outcomes) <= {"replayed", "gone"} for end in ends)
    assert scene.states() == {"ready": len(dead)}


def test_a_batch_that_is_rolled_back_changes_nothing(scene: Scene) -> None:
    scene.bury(5)
    session = scene.database.connect("trunkline_operator")
    with session.transaction(force_rollback=True):
        session.execute("""select trunkline.retry_jobs('{"queue": "burying"}')""")
        session.execute("""select trunkline.cancel_jobs('{"queue": "burying"}')""")
    assert scene.states() == {"dead": 5}
    assert scene.operator.log.list() == []
