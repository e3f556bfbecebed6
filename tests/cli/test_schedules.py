"""``trunkline schedules``."""

from __future__ import annotations

import pytest

from tests.cli.driving import Cli
from tests.support.calls import Calls
from trunkline.errors import (
    InvalidCron,
    TrunklineError,
    UnknownSchedule,
    UnknownTask,
    UnknownTimeZone,
)


def test_from_set_to_remove(cli: Cli) -> None:
    assert "trunkline schedules set" in cli.run("schedules", "list").stderr
    text = cli.text("schedules", "set", "nightly", "0 3 * * *", "send", "--payload", '{"a": 1}')
    assert text.startswith("Schedule nightly created. Next due at 2")
    (row,) = cli.json("schedules", "list")
    assert (row["cron"], row["time_zone"], row["task"]) == ("0 3 * * *", "UTC", "send")
    assert (row["payload"], row["missed"], row["paused"]) == ({"a": 1}, "once", False)
    assert cli.text("schedules", "pause", "nightly") == (
        "Schedule nightly paused. Jobs that it has enqueued continue.\n"
    )
    assert "paused" in cli.text("schedules", "list")
    changed = cli.json(
        *("schedules", "set", "nightly", "@hourly", "send", "--time-zone", "Europe/Paris"),
        *("--queue", "q", "--priority", 3, "--missed", "all"),
    )
    # A change keeps the pause, unless it is named.
    assert (changed["created"], changed["paused"]) == (False, True)
    text = cli.text("schedules", "set", "nightly", "@hourly", "send")
    assert text == "Schedule nightly changed. It is paused.\n"
    text = cli.text("schedules", "resume", "nightly")
    assert text.startswith("Schedule nightly resumed. Next due at 2")
    assert cli.json("schedules", "resume", "nightly")["paused"] is False
    assert cli.run("schedules", "remove", "nightly").exit_code == 2
    assert cli.text("schedules", "remove", "nightly", "--yes") == (
        "Schedule nightly removed. Jobs that it has enqueued stay.\n"
    )
    assert cli.json("schedules", "list") == []


def test_a_schedule_may_begin_paused(cli: Cli) -> None:
    assert cli.json("schedules", "set", "s", "@daily", "send", "--paused")["next_run_at"] is None
    assert cli.json("schedules", "set", "s", "@daily", "send", "--not-paused")["next_run_at"]


def test_what_a_schedule_enqueued_is_shown(cli: Cli, calls: Calls) -> None:
    cli.text("schedules", "set", "s", "* * * * *", "send")
    calls.connection.execute("select trunkline.clock()")
    assert cli.json("schedules", "list")[0]["last_run_at"] is None
    assert "in " in cli.text("schedules", "list")


def test_next(cli: Cli) -> None:
    cli.text("schedules", "set", "s", "30 4 1 1 *", "send", "--time-zone", "Europe/Paris")
    found = cli.json("schedules", "next", "s", "--count", 2, "--after", "2030-06-01T00:00Z")
    assert found == {
        "cron": "30 4 1 1 *",
        "time_zone": "Europe/Paris",
        "due": ["2031-01-01T03:30:00+00:00", "2032-01-01T03:30:00+00:00"],
    }
    tried = cli.text("schedules", "next", "--cron", "@daily", "--count", 3)
    assert len(tried.splitlines()) == 3


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["set", "s", "61 * * * *", "send"], InvalidCron),
        (["set", "s", "@daily", "nonsense"], UnknownTask),
        (["set", "s", "@daily", "send", "--time-zone", "CET2"], UnknownTimeZone),
        (["pause", "nothing"], UnknownSchedule),
        (["resume", "nothing"], UnknownSchedule),
        (["remove", "nothing", "--yes"], UnknownSchedule),
        (["next", "nothing"], UnknownSchedule),
        (["next", "--cron", "* * *"], InvalidCron),
    ],
)
def test_refusals(cli: Cli, arguments: list[str], error: type[TrunklineError]) -> None:
    with pytest.raises(error) as caught:
        cli.run("schedules", *arguments)
    assert caught.value.hint


def test_next_takes_a_name_or_an_expression(cli: Cli) -> None:
    assert cli.run("schedules", "next").exit_code == 2
    assert cli.run("schedules", "next", "s", "--cron", "@daily").exit_code == 2
    assert cli.run("schedules", "next", "s", "--time-zone", "UTC").exit_code == 2
