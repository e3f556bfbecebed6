"""Claims of workers in any language: how many, in which order, and for whom."""

from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from profiles.tests.studio.conftest import AUDIO, PDF, TEXT, Studio, refused
from tests.support.waiting import together


@pytest.mark.parametrize(("asked", "claimed"), [(None, 5), (-3, 1), (0, 1), (1, 1), (7, 7)])
def test_a_claim_takes_up_to_the_number_asked_for(
    studio: Studio, asked: int | None, claimed: int
) -> None:
    """TA-14, TA-15: five by default, at least one; worker, time and lease are set."""
    job = studio.order()
    query = "select * from studio.claim_tasks('w1', p_max_tasks => %s)"
    if asked is None:
        query = "select * from studio.claim_tasks('w1')"
    rows = studio.rows(query, *([] if asked is None else [asked]), calls=studio.worker)
    assert len(rows) == claimed
    tasks = {task.id: task for task in studio.tasks(job)}
    for row in rows:
        task = tasks[row.id]
        assert (task.status, task.worker_id, task.lease_token) == ("claimed", "w1", row.attempt)
        assert task.claimed_at == row.claimed_at
        assert (row.lease_expires_at - row.claimed_at).total_seconds() == 180
        assert (row.attempts, row.max_attempts) == (1, 3)


def test_a_claim_takes_fifty_at_most(studio: Studio) -> None:
    """TA-15: of eighty texts."""
    for _ in range(8):
        studio.order(user=uuid4())
    assert len(studio.claim(count=1000)) == 50


def test_workers_do_not_wait_for_each_other_and_share_no_task(studio: Studio) -> None:
    """TA-16: rows that another claim has locked are skipped."""
    studio.order()
    first = studio.database.connect("trunkline_worker", autocommit=False)
    query = b"select id from studio.claim_tasks('w1', 3)"
    held = {row[0] for row in first.execute(query).fetchall()}
    # The first claim is still open, and holds the bucket of its user.
    assert studio.claim(worker="w2") == []
    other = studio.order(user=uuid4())
    others = {task.job_id for task in studio.claim(worker="w2")}
    assert others == {other}
    first.commit()
    mine = {task.id for task in studio.claim(worker="w3", count=50)}
    assert len(held) == 3
    assert held.isdisjoint(mine)


def test_twenty_workers_claim_every_task_once(studio: Studio) -> None:
    """TA-S09, TA-33: 960 claimable tasks, five for each claim at most."""
    for _ in range(60):
        studio.order(user=uuid4())
    # Once all texts are complete, 60 x 32 tasks can be claimed; take 960 PDFs.
    studio.unlimited()
    while studio.rows(
        "select from studio.job_tasks where task_type = %s and status = 'pending' limit 1", TEXT
    ):
        for task in studio.claim(TEXT, count=50):
            studio.complete(task.id)
    connections = [studio.database.connect("trunkline_worker") for _ in range(20)]

    def work(number: int) -> list[Any]:
        claimed = []
        query = b"select id from studio.claim_tasks(%s, 5, %s)"
        while rows := connections[number].execute(query, (f"w{number}", [PDF])).fetchall():
            assert len(rows) <= 5
            claimed += [row[0] for row in rows]
        return claimed

    found = together([partial(work, number) for number in range(20)])
    claimed = [task for tasks in found for task in tasks]
    # A worker whose last search met locked rows left some to the others.
    claimed += [task.id for task in studio.claim(PDF, count=50)]
    assert len(claimed) == len(set(claimed)) == 960


def test_a_half_done_order_is_finished_before_new_ones_are_begun(studio: Studio) -> None:
    """TA-18: with one half-done order and 49 new ones, the next five claims are the old one's."""
    old = studio.order(user=uuid4())
    studio.unlimited()
    studio.work(TEXT, count=8)
    for _ in range(49):
        studio.order(user=uuid4())
    claimed = [studio.claim(count=1)[0] for _ in range(5)]
    assert {task.job_id for task in claimed} == {old}
    sequences = [task.sequence for task in claimed]
    assert sequences == sorted(sequences)


def test_orders_of_one_user_are_worked_on_in_the_order_of_their_start(studio: Studio) -> None:
    """TA-18: older job first, inside a job by sequence, not by sequence across all jobs."""
    first, second = studio.order(), studio.order()
    studio.unlimited()
    claimed = studio.claim(TEXT, count=20)
    places = [([first, second].index(task.job_id), task.sequence) for task in claimed]
    assert places == sorted(places)
    assert [place for place, _ in places] == [0] * 16 + [1] * 4


def test_one_user_runs_ten_tasks_and_others_are_not_blocked(studio: Studio) -> None:
    """TA-19: many orders of one user, then one of another."""
    for _ in range(20):
        studio.order()
    other = uuid4()
    job = studio.order(user=other)
    assert len(studio.claim(count=50, worker="w1")) == 20
    assert len(studio.rows("select from studio.job_tasks where status = 'claimed'")) == 20
    rows = studio.rows(
        "select user_id, count(*) from studio.job_tasks where status = 'claimed' group by user_id"
    )
    assert {row.user_id: row.count for row in rows} == {str(studio.user): 10, str(other): 10}
    assert studio.claim(count=50) == []
    done = next(task for task in studio.tasks(job) if task.status == "claimed")
    studio.complete(done.id)
    # A slot is free: its user's next task is claimed, not one of the user who has nine hundred.
    assert {task.job_id for task in studio.claim(count=50)} == {job}


def test_a_claim_of_one_type_gets_no_other(studio: Studio) -> None:
    """TA-14: text, PDF and audio pools; an unknown type is refused."""
    studio.order()
    studio.unlimited()
    studio.work(TEXT, count=50)
    assert {task.task_type for task in studio.claim(PDF, count=50)} == {PDF}
    assert {task.task_type for task in studio.claim(count=50)} == {AUDIO}
    with refused("TA006"):
        studio.claim("video_generation")


def test_a_claim_reads_no_finished_task(studio: Studio) -> None:
    """TA-20: the claim touches waiting tasks only, however many have finished."""
    studio.order()
    studio.unlimited()
    studio.finish()
    studio.order()
    superuser = studio.database.superuser()
    superuser.execute("analyze")
    before = _reads(superuser)
    assert len(studio.claim(TEXT)) == 5
    assert _reads(superuser) == before


def _reads(superuser: Any) -> Any:
    """Sequential scans of the finished tasks so far."""
    superuser.execute("select pg_stat_force_next_flush()")
    superuser.execute("select pg_stat_clear_snapshot()")
    return superuser.execute(
        "select coalesce(sum(s.seq_tup_read), 0) from pg_stat_all_tables as s"
        " where s.relname like 'finished%'"
    ).fetchone()[0]
