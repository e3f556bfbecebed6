"""Commands in front of more jobs than they count or search, and what they say of it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

import pytest

from tests.cli.driving import Cli
from tests.support import databases
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.servers import Server

COUNTED, SEARCHED = 10_000, 20_000


@pytest.fixture(scope="module")
def backlog(server: Server, template: str) -> Iterator[Database]:
    """A rare job, then more than a list searches, in a queue that nobody serves."""
    with databases.fresh(server, template) as database:
        calls = Calls(database.connect())
        calls.connection.execute(
            """select trunkline.set_limit('api', '{"concurrency": 1}'),"""
            " trunkline.register_task('rare', p_queue => 'few'),"
            " trunkline.register_task('call', p_queue => 'many', p_limits => '{api}')"
        )
        calls.enqueue("rare")
        database.move_time("1 second")
        for _ in range(SEARCHED // 1000 + 1):
            calls.connection.execute(
                "select trunkline.enqueue_batch('call', (select jsonb_agg('{}'::jsonb)"
                " from generate_series(1, 1000)))"
            )
        yield database


@pytest.fixture
def cli(backlog: Database) -> Cli:
    return Cli(backlog.dsn)


def test_queues_show_that_they_stopped_counting(cli: Cli) -> None:
    rows = {row["queue"]: row for row in cli.json("queues", "list")}
    assert (rows["many"]["ready"], rows["many"]["counted_up_to"]) == (COUNTED, COUNTED)
    assert rows["few"]["ready"] == 1
    shown = cli.text("queues", "list")
    assert "10,000+" in next(line for line in shown.splitlines() if line.startswith("many"))
    assert "+" not in next(line for line in shown.splitlines() if line.startswith("few"))


def test_limits_show_that_they_stopped_counting(cli: Cli) -> None:
    (row,) = cli.json("limits", "list")
    assert (row["waiting"], row["counted_up_to"]) == (COUNTED, COUNTED)
    assert "10,000+" in cli.text("limits", "list")
    assert "10,000+ jobs" in cli.text("limits", "show", "api")


def test_a_list_that_ends_early_names_the_command_that_continues(cli: Cli) -> None:
    listed = cli.run("jobs", "list", "--task", "rare")
    assert listed.stdout == ""
    empty, following = listed.stderr.splitlines()
    assert empty == "No job matches."
    before = "Older jobs were not searched. Continue with: "
    assert following.startswith(before)
    words = shlex.split(following.removeprefix(before))
    assert words[1:5] == ["jobs", "list", "--task", "rare"]
    [job] = cli.json(*words[1:])
    assert job["task"] == "rare"


def test_a_full_page_names_the_next_one(cli: Cli) -> None:
    listed = cli.run("jobs", "list", "--json")
    first = [job["job_id"] for job in json.loads(listed.stdout)]
    second = cli.json("jobs", "list", "--cursor", json.loads(listed.stderr)["next"])
    ids = [*first, *(job["job_id"] for job in second)]
    assert len(set(ids)) == 40
    assert ids == sorted(ids, reverse=True)


def test_counts_show_that_they_stopped_counting(cli: Cli) -> None:
    assert cli.text("jobs", "count", "--task", "call").splitlines()[1].split() == [
        "ready",
        "10,000+",
    ]
    assert {"state": "ready", "jobs": COUNTED, "more": True} in cli.json("jobs", "count")


def unserved(cli: Cli) -> dict[str, str]:
    checks = json.loads(cli.run("doctor", "--json").stdout)["checks"]
    found: dict[str, str] = next(check for check in checks if check["check"] == "unserved jobs")
    return found


def test_the_doctor_reports_that_it_checked_a_part(cli: Cli, backlog: Database) -> None:
    found = unserved(cli)
    assert found["level"] == "warn"
    assert "checked the first 10,000 ready jobs of 1 queue with more" in found["message"]
    assert "call in many (10,000)" in found["message"]
    connection = backlog.connect()
    connection.execute("select trunkline.register_worker('w', null, null, 'host', 1, '1')")
    found = unserved(cli)
    assert found["level"] == "ok"
    assert "checked the first 10,000 ready jobs of 1 queue with more" in found["message"]
