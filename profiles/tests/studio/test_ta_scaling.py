"""How many workers the pools of the studio want."""

from typing import Any
from uuid import uuid4

from profiles.tests.studio.conftest import PDF, TEXT, Studio


def pool(studio: Studio, kind: str = TEXT) -> Any:
    """Let 15 seconds pass, run what is due, as every worker does; return what the pool wants."""
    studio.pass_time("15 seconds")
    studio.worker.connection.execute("select trunkline.run_duties()")
    (row,) = studio.rows("select * from studio.wanted_workers where task_type = %s", kind)
    return row


def decisions(studio: Studio, kind: str = TEXT) -> list[tuple[int | None, int, int]]:
    rows = studio.rows(
        "select wanted_before, wanted, pending from studio.pool_decisions where task_type = %s"
        " order by decision",
        kind,
    )
    return [tuple(row) for row in rows]


def serve(studio: Studio, kind: str = TEXT) -> None:
    """A live worker of a pool."""
    studio.worker.value(
        "select trunkline.register_worker('w1', '{studio}', array[%s], 'host', 5,"
        " p_pulse_interval => '1 hour')",
        kind,
    )


def orders(studio: Studio, users: int) -> list[Any]:
    return [studio.order(uuid4()) for _ in range(users)]


def claim(studio: Studio, count: int) -> list[Any]:
    """Claim so many texts."""
    tasks: list[Any] = []
    while len(tasks) < count:
        found = studio.claim(TEXT, count=min(50, count - len(tasks)))
        assert found, f"only {len(tasks)} of {count} texts could start"
        tasks += found
    return tasks


def complete(studio: Studio, count: int) -> None:
    for task in claim(studio, count):
        studio.complete(task.id, {})


def test_150_pending_texts_ask_for_five_workers_once_and_ten_for_one(studio: Studio) -> None:
    """TA-63, TA-S11: of 20 users with ten running tasks each, so that most of them cannot start."""
    serve(studio)
    orders(studio, 20)
    running = claim(studio, 170)
    found = pool(studio)
    assert (found.pending, found.wanted) == (150, 5)
    # The engine counts what can start now, and would be content with one worker.
    assert found.startable == 30
    for _ in range(3):
        assert pool(studio).wanted == 5
    assert decisions(studio) == [(None, 5, 150)]
    for task in running:
        studio.complete(task.id, {})
    for _ in range(14):
        complete(studio, 10)
    found = pool(studio)
    assert (found.pending, found.wanted) == (10, 5)
    for _ in range(3):
        studio.pass_time("3 minutes")
        assert pool(studio).wanted == 5
    studio.pass_time("1 minute")
    assert pool(studio).wanted == 1
    assert decisions(studio) == [(None, 5, 150), (5, 1, 10)]


def test_a_dip_below_20_does_not_scale_down(studio: Studio) -> None:
    """TA-63: fewer than 20 must be pending for the whole ten minutes."""
    serve(studio)
    studio.unlimited()
    orders(studio, 7)
    assert pool(studio).wanted == 5
    complete(studio, 100)
    assert pool(studio).pending == 12
    studio.pass_time("9 minutes")
    assert pool(studio).wanted == 5
    orders(studio, 1)
    assert pool(studio).pending == 28
    studio.pass_time("9 minutes")
    assert pool(studio).wanted == 5
    complete(studio, 20)
    assert pool(studio).wanted == 5
    studio.pass_time("9 minutes")
    assert pool(studio).wanted == 5
    studio.pass_time("1 minute")
    assert pool(studio).wanted == 1


def test_the_maximum_and_the_numbers_of_the_rule_are_settings(studio: Studio) -> None:
    """TA-63: maximum configurable."""
    serve(studio)
    orders(studio, 7)
    assert pool(studio).wanted == 5
    studio.operator.value("select trunkline.set_setting('scale_max_workers', '3')")
    assert pool(studio).wanted == 3
    studio.operator.value("select trunkline.set_setting('scale_max_workers', '40')")
    studio.operator.value("select trunkline.set_setting('scale_up_workers', '12')")
    assert pool(studio).wanted == 12
    assert pool(studio, PDF).wanted == 0


def test_100_pending_texts_are_not_many(studio: Studio) -> None:
    """TA-63: more than 100."""
    serve(studio)
    orders(studio, 7)
    claim(studio, 12)
    found = pool(studio)
    assert (found.pending, found.wanted) == (100, 1)


def test_readers_see_the_numbers_and_workers_run_the_duty(studio: Studio) -> None:
    """TA-63: a scaler has the role trunkline_reader; the duty is a row like all others."""
    orders(studio, 7)
    reader = studio.database.connect("trunkline_reader")
    query = "select wanted from studio.wanted_workers where task_type = 'text_generation'"
    assert reader.execute(query.encode()).fetchone() == (5,)
    assert reader.execute(b"select count(*) from studio.pool_decisions").fetchone() == (0,)
    pool(studio)
    assert decisions(studio) == [(None, 5, 112)]
    (duty,) = studio.rows("select * from trunkline.duties where duty = 'studio_decide_pools'")
    assert duty.enabled
    assert duty.every.total_seconds() == 15
