"""``trunkline queues`` and ``trunkline workers``."""

from __future__ import annotations

import pytest

from tests.cli.driving import Cli, die
from tests.support.calls import Calls
from tests.support.databases import Database
from trunkline.errors import QueueFull, QueuePaused, SchemaForbidden, UnknownQueue, UnknownWorker


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()[1:]]


def test_queues_list(cli: Cli, calls: Calls) -> None:
    calls.fill(1234, task="send")
    calls.claim("w", 4)
    calls.enqueue("send", delay="1 hour")
    die(calls, 2)
    shown = {row[0]: row[1:] for row in rows(cli.text("queues", "list"))}
    assert shown["mail"][:5] == ["1,230", "4", "1", "0", "0"]
    assert shown["default"][:5] == ["0", "0", "0", "0", "2"]
    found = {row["queue"]: row for row in cli.json("queues", "list")}
    assert (found["mail"]["ready"], found["mail"]["running"]) == (1230, 4)
    assert found["mail"]["oldest_ready_age"] >= 0


def test_pause_and_resume(cli: Cli, calls: Calls) -> None:
    calls.enqueue("send")
    assert cli.text("queues", "pause", "mail", "--reason", "down") == (
        "Queue mail paused. Running jobs continue.\n"
    )
    assert "paused: down" in cli.text("queues", "list")
    assert calls.claim("w").rows == []
    calls.enqueue("send")
    assert cli.json("queues", "pause", "mail", "--refuse-new") == {
        "queue": "mail",
        "paused": True,
        "refuse_enqueue": True,
        "reason": None,
    }
    with pytest.raises(QueuePaused):
        cli.run("jobs", "enqueue", "send")
    assert cli.text("queues", "resume", "mail") == "Queue mail resumed.\n"
    assert cli.json("queues", "resume", "mail")["was_paused"] is False
    assert len(calls.claim("w").rows) == 1
    with pytest.raises(UnknownQueue) as caught:
        cli.run("queues", "resume", "nonsense")
    assert "mail" in str(caught.value)


def test_limit(cli: Cli, calls: Calls) -> None:
    assert cli.text("queues", "limit", "mail", "1") == "Queue mail limited to 1 ready job.\n"
    calls.enqueue("send")
    with pytest.raises(QueueFull):
        cli.run("jobs", "enqueue", "send")
    assert "limit 1" in cli.text("queues", "list")
    assert cli.json("queues", "limit", "mail", "none") == {"queue": "mail", "max_depth": None}
    calls.enqueue("send")
    for wrong in ("0", "-1", "many", "1.5", "99999999999"):
        assert cli.run("queues", "limit", "--", "mail", wrong).exit_code == 2


def test_ageing(cli: Cli, calls: Calls) -> None:
    calls.enqueue("send")
    assert cli.text("queues", "age", "mail") == (
        "Queue mail serves the lowest priority first in one of sixteen claims.\n"
    )
    assert cli.text("queues", "limit", "mail", "9") == "Queue mail limited to 9 ready jobs.\n"
    assert "limit 9, ages" in cli.text("queues", "list")
    assert {row["queue"]: row["ageing"] for row in cli.json("queues", "list")}["mail"] is True
    assert cli.json("queues", "age", "mail", "--off") == {"queue": "mail", "ageing": False}
    assert "ages" not in cli.text("queues", "list")


def test_workers_list_and_drain(cli: Cli, calls: Calls, database: Database) -> None:
    assert "trunkline worker APP" in cli.run("workers", "list").stderr
    for name in ("one", "two", "three"):
        calls.value(
            "select trunkline.register_worker(%s, array['mail'], null, 'host', 7, '1.2')", name
        )
    calls.value("select trunkline.stop_worker('three')")
    calls.enqueue("send")
    calls.claim("one")
    shown = {row[0]: row[1:] for row in rows(cli.text("workers", "list"))}
    assert set(shown) == {"one", "two"}
    assert shown["one"][:2] == ["active", "1"]
    assert "three" in cli.text("workers", "list", "--all")

    assert cli.text("workers", "drain", "one") == (
        "Worker one draining. It finishes its running jobs and claims no more.\n"
    )
    assert cli.json("workers", "drain", "--all", "--yes") == [
        {"worker": "two", "state": "draining"}
    ]
    assert cli.run("workers", "drain", "--all", "--yes").stderr == "No worker is active.\n"
    with pytest.raises(UnknownWorker):
        cli.run("workers", "drain", "nobody")
    assert cli.run("workers", "drain").exit_code == 2

    database.move_time("1 minute")
    assert rows(cli.text("workers", "list"))[0][1] == "silent"


def test_a_role_without_the_right_is_refused_with_a_hint(database: Database, calls: Calls) -> None:
    database.superuser().execute("create role onlooker login; grant trunkline_reader to onlooker")
    try:
        looking = Cli(database.superuser_dsn.replace("//postgres", "//onlooker", 1))
        assert looking.run("queues", "list").exit_code == 0
        with pytest.raises(SchemaForbidden) as caught:
            looking.run("queues", "pause", "mail")
        assert caught.value.hint
    finally:
        database.superuser().execute("drop role onlooker")
