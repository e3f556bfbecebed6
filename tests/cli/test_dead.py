"""``trunkline dead``."""

from __future__ import annotations

import json
import uuid

import pytest

from tests.cli.driving import Cli, die, finish, process
from tests.support.calls import Calls
from trunkline.errors import WrongState


def states(cli: Cli) -> list[str]:
    return sorted(job["state"] for job in cli.json("jobs", "list"))


def test_list_and_show(cli: Cli, calls: Calls) -> None:
    assert cli.run("dead", "list").stderr == "No dead letters\n"
    (one,) = die(calls, message="first")
    (other,) = die(calls, message="second", task="once", queue="side")
    shown = cli.text("dead", "list").splitlines()
    assert [line.split()[0] for line in shown[1:]] == [str(other), str(one)]
    assert "ValueError: second" in shown[1]
    assert [row["job_id"] for row in cli.json("dead", "list", "--queue", "side")] == [str(other)]
    assert cli.json("dead", "list", "--task", "send") == []
    assert len(cli.json("dead", "list", "--limit", 1)) == 1
    assert "ValueError: first" in cli.text("dead", "show", one)
    assert cli.json("dead", "show", one)["errors"][0]["message"] == "first"


def test_show_refuses_what_is_not_dead(cli: Cli, calls: Calls) -> None:
    (done,) = finish(calls)
    with pytest.raises(WrongState) as caught:
        cli.run("dead", "show", done)
    assert f"trunkline jobs show {done}" in caught.value.hint


def test_acknowledge(cli: Cli, calls: Calls) -> None:
    one, other = die(calls, 2)
    assert cli.text("dead", "acknowledge", one) == f"{one}  acknowledged\n"
    left = cli.json("dead", "list", "--unacknowledged")
    assert [row["job_id"] for row in left] == [str(other)]
    assert (
        cli.json("dead", "list")[0]["acknowledged_at"]
        or cli.json("dead", "list")[1]["acknowledged_at"]
    )


def test_replay_by_id_does_not_ask(cli: Cli, calls: Calls) -> None:
    one, other = die(calls, 2)
    assert cli.text("dead", "replay", one) == f"{one}  ready\n"
    assert [row["state"] for row in cli.json("dead", "replay", other)] == ["ready"]
    assert states(cli) == ["ready", "ready"]


def test_replay_by_filter_takes_yes_where_nobody_can_answer(cli: Cli, calls: Calls) -> None:
    die(calls, 3)
    refused = cli.run("dead", "replay", "--task", "once")
    assert refused.exit_code == 2
    assert "Replay 3 dead letters (once 3)?" in refused.stderr
    assert "--yes" in refused.stderr
    assert states(cli) == ["dead"] * 3
    assert len(cli.json("dead", "replay", "--task", "once", "--yes")) == 3
    assert states(cli) == ["ready"] * 3
    assert cli.run("dead", "replay", "--task", "once", "--yes").stderr == "No dead letters fit\n"
    assert cli.json("dead", "replay", "--all", "--yes") == []


def test_filters_are_taken_together(cli: Cli, calls: Calls) -> None:
    die(calls, 1, queue="a")
    (wanted,) = die(calls, 1, queue="b")
    assert [
        row["job_id"]
        for row in cli.json("dead", "replay", "--task", "once", "--queue", "b", "--yes")
    ] == [str(wanted)]
    assert states(cli) == ["dead", "ready"]


def test_dry_run_changes_nothing(cli: Cli, calls: Calls) -> None:
    jobs = die(calls, 2)
    shown = cli.run("dead", "discard", "--all", "--dry-run")
    assert shown.exit_code == 0
    assert {line.split()[0] for line in shown.stdout.splitlines()} == {str(job) for job in jobs}
    assert "Would discard 2 dead letters" in shown.stderr
    assert len(cli.json("dead", "replay", "--all", "--dry-run")) == 2
    assert len(cli.json("dead", "replay", jobs[0], uuid.uuid4(), "--dry-run")) == 1
    assert states(cli) == ["dead", "dead"]


def test_discard_always_takes_a_yes(cli: Cli, calls: Calls) -> None:
    one, other, third = die(calls, 3)
    refused = cli.run("dead", "discard", one)
    assert refused.exit_code == 2
    assert states(cli) == ["dead"] * 3
    told = cli.text("dead", "discard", one, "--yes", "--reason", "old")
    assert told == f"{one}  discarded\n"
    cli.text("dead", "acknowledge", other)
    assert [
        row["job_id"] for row in cli.json("dead", "discard", "--all-acknowledged", "--yes")
    ] == [str(other)]
    assert [row["job_id"] for row in cli.json("dead", "list")] == [str(third)]


def test_ids_or_filters_but_not_both(cli: Cli, calls: Calls) -> None:
    (job,) = die(calls)
    assert cli.run("dead", "replay").exit_code == 2
    assert cli.run("dead", "replay", job, "--all").exit_code == 2
    assert cli.run("dead", "discard", job, "--task", "once", "--yes").exit_code == 2


def test_a_key_held_by_another_is_told_and_the_others_go_on(cli: Cli, calls: Calls) -> None:
    (held,) = die(calls, unique_key="k")
    (free,) = die(calls)
    calls.enqueue("once", unique_key="k")
    result = process("dead", "replay", "--all", "--yes", "--json", dsn=cli.dsn)
    assert result.returncode == 1
    answers = {answer["job_id"]: answer for answer in json.loads(result.stdout)}
    assert answers[str(held)]["error"]["code"] == "unique_key_held"
    assert answers[str(free)]["state"] == "ready"
