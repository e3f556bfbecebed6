"""Troubleshooting: the questions an operator asks, and answers that can be acted upon."""

import re
from pathlib import Path

import pytest

from profiles.tests.executor.conftest import Desk
from tests.support.databases import Database
from tests.support.waiting import backend, until
from trunkline.errors import ProfileError
from trunkline.profiles import Profile, session
from trunkline.profiles.troubleshooting import Answer, troubleshoot

PAGE = Path(__file__).parents[2] / "docs" / "executor.md"


def ask(database: Database, profile: Profile, topic: str) -> dict[str, Answer]:
    """As the superuser, who sees what other sessions run."""
    answers = troubleshoot(database.superuser_dsn, profile, topic)
    return {answer.title: answer for answer in answers}


def test_rc_56_jobs_still_stuck(desk: Desk, database: Database, profile: Profile) -> None:
    """RC-56: who reclaims now, without the one who asks; schedules; the last ten runs."""
    for number in range(12):
        desk.wake("process_orchestrator_jobs" if number % 2 else "wake_execution_engine")
    answers = ask(database, profile, "stuck")
    assert answers["reclaim running now, in other sessions"].rows == ()
    runs = answers["last ten wake-ups"].rows
    assert len(runs) == 10
    assert {run["outcome"] for run in runs} == {"ok"}
    schedules = {row["schedule"]: row for row in answers["duty and wake-ups"].rows}
    assert schedules.keys() == {
        "duty reclaim",
        "process_orchestrator_jobs",
        "wake_execution_engine",
    }
    assert all(row["last_success"] for row in schedules.values())


def test_rc_56_a_reclaim_that_hangs_is_named(
    desk: Desk, database: Database, profile: Profile
) -> None:
    """RC-56: by its process, so that it can be ended."""
    holder = database.superuser(autocommit=False)
    holder.execute("lock table executor.executor_cycles in access exclusive mode")
    hanging = database.connect("trunkline_worker")
    pid = backend(hanging)
    cursor = hanging.cursor()
    # Sent without waiting for the answer, which will not come.
    hanging.pgconn.send_query(b"select executor.process_orchestrator_jobs()")
    title = "reclaim running now, in other sessions"

    def found() -> list[int]:
        with session(database.superuser_dsn, profile) as opened:
            return [row[0] for row in opened.ask("reclaim_now")]

    assert until(found, title) == [pid]
    holder.rollback()
    cursor.close()
    hanging.close()


def test_rc_57_reclaim_finds_nothing(desk: Desk, database: Database, profile: Profile) -> None:
    """RC-57, RC-65: running for more than five minutes, oldest lock first, with age and TTL."""
    first = desk.start("submit_anchor_polygon", "w1")
    desk.pass_time("10 minutes")
    second = desk.start("run_tsa", "w2")
    assert desk.beat(second, "w2")
    desk.pass_time("6 minutes")
    desk.start("run_tsa", "w3")
    (answer,) = ask(database, profile, "nothing").values()
    assert [(row["id"], row["type"]) for row in answer.rows] == [
        (first, "submit_anchor_polygon"),
        (second, "run_tsa"),
    ]
    assert [int(row["age_minutes"]) for row in answer.rows] == [16, 6]
    assert [int(row["ttl_minutes"]) for row in answer.rows] == [60, 30]
    assert [row["heartbeat_at"] is not None for row in answer.rows] == [False, True]
    assert "'processing'" in answer.sql


def test_rc_58_too_many_reclaims(desk: Desk, database: Database, profile: Profile) -> None:
    """RC-58: of the last hour, by type and where the job went, from the events."""
    for _ in range(2):
        desk.start("build_artifact")
        desk.pass_time("16 minutes")
        desk.reclaim()
        desk.worker.batch("complete", "w4", desk.worker.claim("w4", 10).attempts)
    (answer,) = ask(database, profile, "many").values()
    assert [(row["type"], row["status"], row["reclaims"]) for row in answer.rows] == [
        ("build_artifact", "queued", 2)
    ]
    desk.pass_time("2 hours")
    (answer,) = ask(database, profile, "many").values()
    assert answer.rows == ()


def test_an_unknown_topic_is_answered_with_the_known_ones(
    database: Database, profile: Profile
) -> None:
    with pytest.raises(ProfileError, match="stuck, nothing, many"):
        troubleshoot(database.dsn, profile, "else")


def test_rc_56_the_page_has_the_same_sql(profile: Profile) -> None:
    """RC-56, RC-57, RC-58: what the command runs can be copied from the documentation."""
    blocks = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    shown = {re.sub(r"\s+", " ", block).strip(" ;") for block in blocks}
    for questions in profile.topics.values():
        for _, name in questions:
            text = profile.text("ask", f"{name}.sql")
            statement = "\n".join(li for li in text.splitlines() if not li.startswith("--"))
            assert re.sub(r"\s+", " ", statement).strip() in shown, name
