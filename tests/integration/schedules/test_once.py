"""Each due time is enqueued once, however many look at it and whatever dies in between."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import pytest
from psycopg import Connection

from tests.integration.schedules.desk import Desk, Row, operator, run
from tests.support.internals import periodic

_LOOKERS = 8
_SCHEDULES = 12
_ROUNDS = 4


def _together(lookers: list[Callable[[], list[Row]]]) -> list[Row]:
    barrier = Barrier(len(lookers))

    def look(looker: Callable[[], list[Row]]) -> list[Row]:
        barrier.wait()
        return looker()

    with ThreadPoolExecutor(len(lookers)) as pool:
        return [row for rows in pool.map(look, lookers) for row in rows]


def _look_twice(connection: Connection[Row]) -> list[Row]:
    # The limit leaves something for whoever comes second.
    return run(connection, 5) + run(connection, 5)


@pytest.mark.parametrize("guarded", [True, False], ids=["guarded", "unguarded"])
def test_eight_processes_enqueue_each_due_time_once(desk: Desk, *, guarded: bool) -> None:
    if not guarded:
        # The lock of the duty saves work; the rows of the schedules alone must be enough.
        periodic.unguard_duties(desk.database.superuser())
    for number in range(_SCHEDULES):
        desk.set(f"schedule {number}", p_missed="all")
    connections = [operator(desk.database) for _ in range(_LOOKERS)]
    told: list[Row] = []
    for _ in range(_ROUNDS):
        desk.database.move_time("1 hour")
        told += _together([partial(_look_twice, one) for one in connections])
        told += desk.run()
    expected = {
        (f"schedule {number}", desk.hour(hour + 1))
        for number in range(_SCHEDULES)
        for hour in range(_ROUNDS)
    }
    assert Counter((row["schedule"], row["due_at"]) for row in told) == Counter(expected)
    jobs = desk.jobs()
    assert {job["job_id"] for job in jobs} == {row["job_id"] for row in told}
    assert len(jobs) == len(expected)


def test_run_that_never_committed_is_done_by_another(desk: Desk) -> None:
    desk.set("hourly")
    desk.database.move_time("1 hour")
    doomed = operator(desk.database, autocommit=False)
    assert len(run(doomed)) == 1
    # While it is at it nobody waits for it.
    assert desk.run() == []
    desk.database.superuser().execute(
        "select pg_terminate_backend(%s, 10000)", (doomed.info.backend_pid,)
    )
    (row,) = desk.run()
    assert row["due_at"] == desk.hour(1)
    assert [job["job_id"] for job in desk.jobs()] == [row["job_id"]]


def test_due_time_is_the_idempotency_key(desk: Desk) -> None:
    """Should the row of a schedule ever be put back, for instance from a backup."""
    desk.set("hourly")
    desk.database.move_time("1 hour")
    (first,) = desk.run()
    periodic.make_schedules_due(desk.database.superuser(), desk.hour(1))
    (again,) = desk.run()
    assert again["job_id"] == first["job_id"]
    assert len(desk.jobs()) == 1


def test_a_schedule_that_is_being_changed_is_left_for_the_next_run(desk: Desk) -> None:
    desk.set("changing")
    desk.set("free")
    desk.database.move_time("1 hour")
    other = operator(desk.database, autocommit=False)
    other.execute("select trunkline.pause_schedule('changing')")
    assert [row["schedule"] for row in desk.run()] == ["free"]
    other.rollback()
    assert [row["schedule"] for row in desk.run()] == ["changing"]
