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
    assert cli.run("dead", "list").stderr == "No dead letter matches.\n"
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
    assert "Replay 3 dead letters?" in refused.stderr
    assert "--yes" in refused.stderr
    assert states(cli) == ["dead"] * 3
    assert cli.text("dead", "replay", "--task", "once", "--yes") == "3 dead letters replayed.\n"
    assert states(cli) == ["ready"] * 3
    again = cli.run("dead", "replay", "--task", "once", "--yes")
    assert (again.exit_code, again.stderr) == (0, "No dead letter matches the filter.\n")
    assert cli.json("dead", "replay", "--all", "--yes")["jobs"] == 0


def test_filters_are_taken_together(cli: Cli, calls: Calls) -> None:
    die(calls, 1, queue="a")
    (wanted,) = die(calls, 1, queue="b")
    replayed = cli.json("dead", "replay", "--task", "once", "--queue", "b", "--yes")
    assert replayed["outcomes"] == {"replayed": 1}
    assert cli.json("jobs", "show", wanted)["state"] == "ready"
    assert states(cli) == ["dead", "ready"]


def test_dry_run_changes_nothing(cli: Cli, calls: Calls) -> None:
    jobs = die(calls, 2)
    shown = cli.run("dead", "discard", "--all", "--dry-run")
    assert shown.exit_code == 0
    first, _, *rows = shown.stdout.splitlines()
    assert first == "2 dead letters would be discarded. The newest:"
    assert {row.split()[0] for row in rows} == {str(job) for job in jobs}
    preview = cli.json("dead", "replay", "--all", "--dry-run")
    assert preview["counts"] == [{"state": "dead", "jobs": 2, "more": False}]
    assert {job["job_id"] for job in preview["sample"]} == {str(job) for job in jobs}
    preview = cli.json("dead", "replay", jobs[0], uuid.uuid4(), "--dry-run")
    assert [job["job_id"] for job in preview["sample"]] == [str(jobs[0])]
    assert states(cli) == ["dead", "dead"]


def test_discard_always_takes_a_yes(cli: Cli, calls: Calls) -> None:
    one, other, third = die(calls, 3)
    refused = cli.run("dead", "discard", one)
    assert refused.exit_code == 2
    assert states(cli) == ["dead"] * 3
    told = cli.text("dead", "discard", one, "--yes", "--reason", "old")
    assert told == f"{one}  discarded\n"
    cli.text("dead", "acknowledge", other)
    discarded = cli.json("dead", "discard", "--acknowledged", "--yes")
    assert discarded["outcomes"] == {"discarded": 1}
    assert [row["job_id"] for row in cli.json("dead", "list")] == [str(third)]


def test_ids_or_filters_but_not_both(cli: Cli, calls: Calls) -> None:
    (job,) = die(calls)
    assert cli.run("dead", "replay").exit_code == 2
    assert cli.run("dead", "replay", job, "--all").exit_code == 2
    assert cli.run("dead", "discard", job, "--task", "once", "--yes").exit_code == 2


def test_a_key_held_by_another_job_is_counted_and_the_others_go_on(cli: Cli, calls: Calls) -> None:
    (held,) = die(calls, unique_key="k")
    (free,) = die(calls)
    calls.enqueue("once", unique_key="k")
    result = process("dead", "replay", "--all", "--yes", "--json", dsn=cli.dsn)
    assert result.returncode == 1
    document = json.loads(result.stdout)
    assert document["outcomes"] == {"replayed": 1, "unique_key_held": 1}
    assert cli.json("jobs", "show", held)["state"] == "dead"
    assert cli.json("jobs", "show", free)["state"] == "ready"
    shown = cli.run("dead", "replay", "--all", "--yes")
    assert shown.exit_code == 1
    assert shown.stdout == "1 dead letter refused (unique_key_held).\n"
