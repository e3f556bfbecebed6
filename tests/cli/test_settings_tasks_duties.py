"""``trunkline settings``, ``tasks`` and ``duties``."""

from __future__ import annotations

import pytest

from tests.cli.driving import Cli
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.internals import breaks
from trunkline.errors import InvalidSetting, UnknownDuty, UnknownSetting, UnknownTask


def test_settings(cli: Cli) -> None:
    assert "claims_enabled" in cli.text("settings", "list")
    assert cli.text("settings", "get", "lease") == "300 seconds\n"
    assert cli.text("settings", "set", "lease", "10m") == "Setting lease changed to 10m.\n"
    row = cli.json("settings", "get", "lease")
    assert (row["value"], row["origin"], row["default_value"]) == ("10m", "operator", "300 seconds")
    assert {row["name"] for row in cli.json("settings", "list") if row["origin"] != "default"} == {
        "lease"
    }
    assert cli.text("settings", "reset", "lease") == (
        "Setting lease reset to its default, 300 seconds.\n"
    )
    assert cli.json("settings", "set", "crash_limit", "5") == {"name": "crash_limit", "value": "5"}


def test_settings_are_refused_with_a_reason(cli: Cli) -> None:
    for command in (("get", "nonsense"), ("set", "nonsense", "1"), ("reset", "nonsense")):
        with pytest.raises(UnknownSetting) as caught:
            cli.run("settings", *command)
        assert "claims_enabled" in str(caught.value)
        assert caught.value.hint
    with pytest.raises(InvalidSetting):
        cli.run("settings", "set", "crash_limit", "many")
    with pytest.raises(InvalidSetting):
        cli.run("settings", "set", "lease", "1 second")


def test_tasks_are_listed_with_limits_and_schedule(cli: Cli, calls: Calls) -> None:
    calls.register("page", limits=["openai", "document/{document}"], cost={"tokens": 1200})
    payload = ("--payload", '{"document": "d1"}')
    cli.text("schedules", "set", "nightly", "0 3 * * *", "page", *payload)
    (line,) = [line for line in cli.text("tasks", "list").splitlines() if "page" in line]
    assert line.split("  ")[:1] == ["page"]
    assert "openai, document/{document}" in line
    assert "0 3 * * *" in line
    cli.text("schedules", "set", "noon", "0 12 * * *", "page", *payload)
    (line,) = [line for line in cli.text("tasks", "list").splitlines() if "page" in line]
    assert "2 schedules" in line
    text = cli.text("tasks", "show", "page")
    for shown in ("openai, document/{document}", "1,200 tokens", "0 3 * * * (nightly)"):
        assert shown in text
    task = cli.json("tasks", "show", "page")
    assert task["limits"] == ["openai", "document/{document}"]
    assert task["schedules"] == {"nightly": "0 3 * * *", "noon": "0 12 * * *"}


def test_the_hard_limit_of_a_task_is_not_called_its_limit(cli: Cli) -> None:
    titles = cli.text("tasks", "list").splitlines()[0].split("  ")
    assert "HARD LIMIT" in [title.strip() for title in titles]
    assert "LIMIT" not in [title.strip() for title in titles]


def test_tasks(cli: Cli) -> None:
    shown = [line.split()[:2] for line in cli.text("tasks", "list").splitlines()]
    assert shown == [
        ["TASK", "QUEUE"],
        ["once", "default"],
        ["send", "mail"],
        ["watched", "default"],
    ]
    policy = cli.text("tasks", "show", "send")
    assert "10s x 2 for each failure, at most 1h, ± 20%" in policy
    row = cli.json("tasks", "show", "watched")
    assert (row["audit"], row["lease"], row["max_attempts"]) == (True, 300.0, 4)
    with pytest.raises(UnknownTask) as caught:
        cli.run("tasks", "show", "nonsense")
    assert "send" in str(caught.value)


def test_an_old_name_of_a_task_is_shown_as_such(cli: Cli, calls: Calls) -> None:
    assert "ALIAS" not in cli.text("tasks", "list")
    calls.value(
        "select trunkline.register_tasks(%s::jsonb)", '[{"task": "dispatch", "alias_of": "send"}]'
    )
    lines = cli.text("tasks", "list").splitlines()
    assert "ALIAS OF" in lines[0]
    assert [line.split()[0] for line in lines[1:] if line.split()[-1] == "send"] == ["dispatch"]
    assert "alias of" in cli.text("tasks", "show", "dispatch")
    assert "alias of" not in cli.text("tasks", "show", "send")
    assert cli.json("tasks", "show", "dispatch")["alias_of"] == "send"


def test_duties(cli: Cli, calls: Calls, database: Database) -> None:
    database.move_time("1 hour")
    listed = {row["duty"]: row for row in cli.json("duties", "list")}
    assert listed["reclaim"]["late"]
    assert "late" in cli.text("duties", "list")
    ran = {row["duty"]: row for row in cli.json("duties", "run")}
    assert ran["reclaim"]["ran"]
    assert not any(row["late"] for row in cli.json("duties", "list"))
    assert cli.text("duties", "run", "promote") == "Duty promote finished: 0 rows.\n"


def test_an_unknown_duty_is_refused_with_the_known_ones(cli: Cli) -> None:
    for command in ("run", "enable", "disable"):
        with pytest.raises(UnknownDuty) as caught:
            cli.run("duties", command, "nonsense")
        assert "promote" in str(caught.value)


def test_a_disabled_duty_is_listed_as_such_and_skipped(cli: Cli, database: Database) -> None:
    database.move_time("1 hour")
    assert cli.text("duties", "disable", "promote") == ("Duty promote disabled. Workers skip it.\n")
    (listed,) = [line for line in cli.text("duties", "list").splitlines() if "promote" in line]
    assert "disabled" in listed
    assert "promote" not in {row["duty"] for row in cli.json("duties", "run")}
    assert cli.json("duties", "enable", "promote") == {"duty": "promote", "enabled": True}
    assert "promote" in {row["duty"] for row in cli.json("duties", "run")}


def test_a_duty_of_the_user_runs_by_its_name(cli: Cli, database: Database) -> None:
    installer = database.connect()
    installer.execute(
        "create function public.tidy() returns integer language sql as 'select 1';"
        "select trunkline.add_duty('tidy', 'public.tidy', '1 day')"
    )
    assert cli.text("duties", "run", "tidy") == "Duty tidy finished: 1 row.\n"
    (row,) = [row for row in cli.json("duties", "list") if row["duty"] == "tidy"]
    assert (row["enabled"], row["function"], row["runs"]) == (True, "public.tidy", 1)


def test_one_duty_does_its_work(cli: Cli, calls: Calls, database: Database) -> None:
    calls.enqueue("send", delay="1 minute")
    database.move_time("5 minutes")
    assert cli.json("duties", "run", "promote") == [
        {"duty": "promote", "ran": True, "rows": 1, "error": None}
    ]


def test_a_failing_duty_is_reported_and_fails_the_command(
    cli: Cli, calls: Calls, database: Database
) -> None:
    breaks.break_sweep_idempotency(database.superuser())
    result = cli.run("duties", "run", "sweep_idempotency")
    assert result.exit_code == 1
    assert "Duty sweep_idempotency failed: " in result.stdout
