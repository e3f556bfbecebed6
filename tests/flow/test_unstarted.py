"""What is claimed must start at once: how many limited jobs a claim takes, what is given back."""

import psycopg
import pytest

from tests.flow.conftest import Desk
from tests.support.internals import usage


def claimed(desk: Desk, limit: int, limited: int | None) -> list[str]:
    rows = desk.worker.connection.execute(
        "select task from trunkline.claim(p_worker => 'w', p_limit => %s, p_limited => %s)",
        (limit, limited),
    ).fetchall()
    return [row[0] for row in rows]


def test_a_claim_takes_no_more_limited_jobs_than_it_asks_for(desk: Desk) -> None:
    desk.limit("api", requests_per_minute=50).task("api").task(task="free")
    desk.enqueue(8)
    desk.enqueue(4, task="free")
    assert sorted(claimed(desk, 6, 2)) == ["free"] * 4 + ["work"] * 2
    assert claimed(desk, 6, 0) == []
    assert desk.bucket("api")["requests_of_minute"] == 2
    assert claimed(desk, 5, 5) == ["work"] * 5
    # Without a word it is as many as of the others.
    assert claimed(desk, 5, None) == ["work"]


def test_a_claim_that_leaves_jobs_behind_wakes_others(desk: Desk) -> None:
    """Another worker that looked meanwhile found the bucket taken, and sleeps."""
    desk.limit("api", requests_per_minute=50).task("api")
    desk.enqueue(8)
    desk.worker.connection.execute("select trunkline.register_worker(p_worker => 'sleeper')")
    desk.worker.connection.execute("select trunkline.sleep(p_worker => 'sleeper')")
    listener = desk.database.connect("trunkline_worker")
    listener.execute("listen trunkline_wake")
    assert claimed(desk, 100, 3) == ["work"] * 3
    heard = [notify.payload for notify in listener.notifies(timeout=180, stop_after=1)]
    assert heard == ["default"]
    # Who took all there was has nothing to tell.
    assert claimed(desk, 100, 10) == ["work"] * 5
    desk.worker.connection.execute("notify trunkline_wake, 'end'")
    heard = [notify.payload for notify in listener.notifies(timeout=180, stop_after=1)]
    assert heard == ["end"]


@pytest.mark.parametrize("limited", [-1, 10_001])
def test_a_number_out_of_its_range_is_refused(desk: Desk, limited: int) -> None:
    with pytest.raises(psycopg.DatabaseError) as caught:
        claimed(desk, 1, limited)
    assert caught.value.sqlstate == "TL006"


def test_only_limited_jobs_have_to_start_at_once(desk: Desk) -> None:
    desk.limit("api", requests_per_minute=50).task("api").task(task="free")
    desk.enqueue(1)
    desk.enqueue(1, task="free")
    rows = desk.worker.connection.execute(
        "select task, extract(epoch from start_by - claimed_at)::int"
        " from trunkline.claim(p_worker => 'w', p_limit => 5) order by task"
    ).fetchall()
    assert rows == [("free", None), ("work", 1)]


def test_what_never_started_is_charged_at_none_of_its_limits(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=500, tokens_per_hour=5000).limit("all", concurrency=5)
    desk.task("api", "all", cost={"tokens": 400})
    desk.enqueue(2)
    attempts = desk.claim()
    assert len(attempts) == 1
    desk.end(attempts, "release", unstarted=True)
    bucket = desk.bucket("api")
    assert (bucket["tokens_of_minute"], bucket["tokens_of_hour"], bucket["requests_of_minute"]) == (
        0,
        0,
        0,
    )
    assert desk.bucket("all")["in_use"] == 0
    # So there is room for it again, and it is charged once.
    assert len(desk.claim()) == 1
    assert desk.bucket("api")["tokens_of_minute"] == 400
    # Nothing was spent, and nothing is learned from it.
    assert sum(entry.tokens for entry in usage.entries(desk.behind)) == 0
    assert usage.estimates(desk.behind) == []


@pytest.mark.parametrize("how", ["release", "fail", "snooze"])
def test_what_has_started_stays_charged(desk: Desk, how: str) -> None:
    """CP-60."""
    desk.limit("api", tokens_per_minute=1000).task("api", cost={"tokens": 400})
    desk.enqueue(1)
    more = {"delays": ["1 hour"]} if how == "snooze" else {}
    desk.end(desk.claim(), how, **more)
    assert desk.bucket("api")["tokens_of_minute"] == 400


def test_what_was_settled_is_not_given_back_again(desk: Desk) -> None:
    """A worker that says unstarted of a job which has settled."""
    desk.limit("api", tokens_per_minute=1000).task("api", cost={"tokens": 400})
    desk.enqueue(1)
    (attempt,) = desk.claim()
    desk.worker.value(
        "select trunkline.settle_job(%s, %s, '{\"tokens\": 300}')", attempt.job, attempt.number
    )
    desk.end([attempt], "release", unstarted=True)
    assert desk.bucket("api")["tokens_of_minute"] == 300


def test_an_attempt_of_another_worker_is_not_refunded(desk: Desk) -> None:
    desk.limit("api", tokens_per_minute=1000).task("api", cost={"tokens": 400})
    desk.enqueue(1)
    (attempt,) = desk.claim()
    (verdict,) = desk.worker.batch("release", "stranger", [attempt], unstarted=True)
    assert verdict.verdict == "lost"
    assert desk.bucket("api")["tokens_of_minute"] == 400
