"""Help: quick, complete, and with examples in every command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from tests.cli.driving import PROGRAM, process
from trunkline.cli import main
from trunkline.cli.main import cli

# These use no server, or their own.
WITHOUT_DSN = {
    "completion",
    "db dsn",
    "db psql",
    "db reset",
    "db start",
    "db status",
    "db stop",
    "schema sql",
    "store check",
    "store rotate-secret",
}
# Their output is that of psql, a script or a log.
WITHOUT_JSON = {"api", "completion", "db psql", "schema sql", "up", "worker"}
# Tested elsewhere.
ELSEWHERE = ("demo", "profile")


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from commands(found, f"{path}{name} ")
        elif not (path + name).startswith(ELSEWHERE):
            yield path + name, found


ALL = dict(commands(cli))


def test_the_table_has_the_commands_that_were_promised() -> None:
    promised = (
        "api artifacts bench breakers completion db dead demo doctor duties events jobs keys limits"
        " log profile queues quotas scale schedules schema settings store tasks up worker workers"
        " workflows"
    )
    assert " ".join(cli.list_commands(click.Context(cli))) == promised
    groups = {
        "dead": "list groups show edit replay discard acknowledge",
        "duties": "disable enable list run",
        "jobs": "list count show tail enqueue cancel retry reprioritise discard explain",
        "breakers": "list set reset trip",
        "keys": "create list revoke",
        "limits": "list set show pause resume",
        "queues": "list pause resume limit age",
        "quotas": "list show set usage",
        "schedules": "list set pause resume remove next",
        "settings": "list get set reset",
        "tasks": "list show",
        "workers": "list drain",
    }
    assert {f"{group} {name}" for group, names in groups.items() for name in names.split()} <= set(
        ALL
    )


@pytest.mark.parametrize("name", ALL)
def test_every_command_has_a_description_and_examples(name: str) -> None:
    command = ALL[name]
    text = command.get_help(click.Context(command, info_name=name))
    assert command.help, name
    assert "Examples:\n" in text
    examples = text.partition("Examples:\n")[2].splitlines()
    assert any(f"trunkline {name}" in line for line in examples), examples
    for option in command.params:
        if isinstance(option, click.Option) and option.name not in {"tenant", "time_zone", "count"}:
            assert option.help or option.name == "log_level", f"{name} {option.name}"


@pytest.mark.parametrize("name", sorted({name.split()[0] for name in ALL if " " in name}))
def test_no_line_of_a_group_is_cut(name: str) -> None:
    group = cli.get_command(click.Context(cli), name)
    assert group is not None
    shown = group.get_help(click.Context(group, info_name=name, terminal_width=80))
    assert not [line for line in shown.partition("Commands:")[2].splitlines() if "..." in line]


@pytest.mark.parametrize("name", ALL)
def test_every_command_takes_a_server_and_prints_json(name: str) -> None:
    options = {option for parameter in ALL[name].params for option in parameter.opts}
    assert ("--dsn" in options) == (name not in WITHOUT_DSN)
    assert ("--json" in options) == (name not in WITHOUT_JSON)


def test_help_imports_no_group_and_nothing_heavy() -> None:
    result = subprocess.run(
        [sys.executable, "-X", "importtime", *PROGRAM[1:], "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Usage: trunkline" in result.stdout
    imported = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert "trunkline.cli.main" in imported
    heavy = {"asyncio", "httpx2", "msgspec", "psycopg", "psycopg_pool", "rich", "uvloop"}
    assert not heavy & {name.partition(".")[0] for name in imported}
    rooms = {".".join(name.split(".")[:2]) for name in imported if name.startswith("trunkline.")}
    assert rooms == {
        "trunkline.cli",
        "trunkline.errors",
        "trunkline.telemetry",
        "trunkline.version",
    }
    # Groups and what they share are imported when a command runs.
    assert {name for name in imported if name.startswith("trunkline.cli.")} == {
        "trunkline.cli.main"
    }


def test_help_is_quick() -> None:
    taken = []
    for _ in range(5):
        shown = subprocess.Popen([*PROGRAM, "--help"], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(shown.pid, 0)
        shown.returncode = os.waitstatus_to_exitcode(status)
        assert shown.returncode == 0
        # Processor time, because other tests share the machine.
        taken.append(used.ru_utime + used.ru_stime)
    assert min(taken) < 0.15, taken


def test_help_lists_the_exit_codes() -> None:
    shown = process("--help").stdout
    assert "Exit codes:" in shown
    for code in ("0", "1", "2", "3", "4", "130"):
        assert f"\n    {code} " in shown


def test_a_command_that_is_not_there_breaks_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(main.COMMANDS, "gone", ("trunkline.cli.gone:gone", "Not there."))
    context = click.Context(cli)
    assert "gone" in cli.get_help(context)
    absent = cli.get_command(context, "gone")
    assert absent is not None
    with pytest.raises(click.ClickException, match="not part of this installation"):
        absent.main(["--some", "argument"], standalone_mode=False)


def test_a_mistake_inside_a_command_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(main.COMMANDS, "bad", ("trunkline.nowhere.bad:bad", ""))
    with pytest.raises(ModuleNotFoundError, match=r"trunkline\.nowhere"):
        cli.get_command(click.Context(cli), "bad")


def test_wrong_usage_is_code_2() -> None:
    assert process("nonsense").returncode == 2
    assert process("jobs", "show", "not-an-id").returncode == 2
    assert "is neither a job id nor" in process("jobs", "show", "not-an-id").stderr
