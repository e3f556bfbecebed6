"""Dead letters by their error: groups, edited payloads and paced replays."""

from __future__ import annotations

import json
import re
import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.driving import PROGRAM, Cli, die, process
from tests.cli.terminal import Terminal
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.internals.jobs import error_group
from trunkline.errors import (
    AppNotFound,
    InvalidArgument,
    LimitKeyMissing,
    PayloadMismatch,
    TrunklineError,
    UnknownTask,
    WrongState,
)

APP = """
from trunkline import Trunkline

app = Trunkline()


@app.task
def once(to: str, copies: int = 1) -> None:
    pass
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of two applications, in which commands run."""
    (tmp_path / "edited_shop.py").write_text(APP)
    (tmp_path / "other_shop.py").write_text(APP.replace("once", "twice"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def group_of(cli: Cli, pattern: str) -> str:
    groups = {row["pattern"]: row["error_group"] for row in cli.json("dead", "groups")}
    group: str = groups[pattern]
    return group


def test_groups_are_listed_and_their_short_names_can_be_passed_back(cli: Cli, calls: Calls) -> None:
    assert cli.run("dead", "groups").stderr == "No dead letter matches.\n"
    die(calls, 3, message="no user 17")
    (other,) = die(calls, message="full")
    title, first, second = cli.text("dead", "groups").splitlines()
    assert title.split() == ["GROUP", "JOBS", "LAST", "TASKS", "ERROR"]
    assert re.fullmatch(r"[0-9a-f]{16}\s+3\s.*once\s+ValueError: no user <number>", first)
    group = second.split()[0]
    assert [job["job_id"] for job in cli.json("dead", "list", "--group", group)] == [str(other)]
    assert [job["error_group"] for job in cli.json("dead", "list", "--group", group[:8])] == [group]
    assert len(cli.json("dead", "groups", "--group", group[:4])) == 1
    assert cli.text("dead", "replay", "--group", group[:8], "--yes") == "1 dead letter replayed.\n"
    assert [row["jobs"] for row in cli.json("dead", "groups")] == [3]


@pytest.mark.parametrize("group", ["0000000000000000", "00000000"])
@pytest.mark.parametrize(
    "command", ["dead replay --yes", "dead replay --rate 5/s --yes", "dead list", "dead discard"]
)
def test_an_empty_group_is_a_clear_error(cli: Cli, calls: Calls, command: str, group: str) -> None:
    die(calls)
    with pytest.raises(InvalidArgument) as refused:
        cli.run(*command.split(), "--group", group)
    assert "no dead letter is in this error group" in str(refused.value)
    assert group in str(refused.value)
    assert "trunkline dead groups" in refused.value.hint


def test_the_start_of_several_groups_and_other_text_are_refused(
    cli: Cli, calls: Calls, database: Database
) -> None:
    messages: dict[str, list[str]] = {}
    start = ""
    superuser = database.superuser()
    while len(messages.get(start, ())) < 2:
        number = len(messages)
        message = "error " + "".join(chr(ord("g") + int(digit)) for digit in str(number))
        start = error_group(superuser, "ValueError", message)[:4]
        messages.setdefault(start, []).append(message)
    for message in messages[start]:
        die(calls, message=message)
    with pytest.raises(InvalidArgument, match="several error groups"):
        cli.run("dead", "list", "--group", start)
    for text in ("abc", "x" * 8, "ABCD", ""):
        with pytest.raises(InvalidArgument, match="neither an error group"):
            cli.run("dead", "list", "--group", text)


def test_an_edited_payload_runs(cli: Cli, calls: Calls, tmp_path: Path) -> None:
    (job,) = die(calls, payload={"to": "nobody"})
    file = tmp_path / "payload.json"
    file.write_text('{"to": "ada"}')
    shown = cli.text("dead", "edit", str(job)[:18], f"@{file}", "--reason", "typo")
    assert shown == f"{job}  ready with the new payload\n"
    assert cli.json("jobs", "show", job)["payload"] == {"to": "ada"}
    with pytest.raises(WrongState):
        cli.run("dead", "edit", job, "{}")


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        ('{"copies": 2}', PayloadMismatch),
        ('{"to": "ada", "copies": "two"}', PayloadMismatch),
        ('{"to": "ada", "bcc": "bob"}', PayloadMismatch),
        (json.dumps({"to": "x" * 300_000}), TrunklineError),
    ],
)
def test_a_payload_that_does_not_fit_is_refused_and_nothing_is_lost(
    cli: Cli,
    calls: Calls,
    payload: str,
    error: type[TrunklineError],
    shop: Path,
) -> None:
    (job,) = die(calls, payload={"to": "nobody"})
    file = shop / "payload.json"
    file.write_text(payload)
    with pytest.raises(error):
        cli.run("dead", "edit", job, f"@{file}", "--app", "edited_shop:app")
    shown = cli.json("dead", "show", job)
    assert (shown["state"], shown["payload"]) == ("dead", {"to": "nobody"})
    cli.text("dead", "edit", job, '{"to": "ada"}', "--app", "edited_shop:app")


@pytest.mark.usefixtures("shop")
def test_an_edit_checks_its_arguments_first(cli: Cli, calls: Calls) -> None:
    (job,) = die(calls)
    for payload in ("[1]", "{to: ada}", "@/nowhere"):
        assert cli.run("dead", "edit", job, payload).exit_code == 2
    with pytest.raises(UnknownTask):
        cli.run("dead", "edit", job, "{}", "--app", "other_shop:app")
    with pytest.raises(AppNotFound):
        cli.run("dead", "edit", job, "{}", "--app", "nowhere:app")
    without = process("dead", "edit", job, dsn=cli.dsn)
    assert without.returncode == 2
    assert "no terminal for an editor" in without.stderr
    assert cli.json("dead", "show", job)["payload"] == {}


@contextmanager
def editing(cli: Cli, job: object, tmp_path: Path, script: str) -> Iterator[Terminal]:
    """The command in a terminal, with a shell script as the editor."""
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(0o700)
    with Terminal(
        "/usr/bin/env",
        f"EDITOR={editor}",
        "VISUAL=",
        f"TMPDIR={tmp_path}",
        *PROGRAM,
        "dead",
        "edit",
        str(job),
        dsn=cli.dsn,
        columns=400,
    ) as terminal:
        yield terminal


def test_the_editor_opens_with_the_payload(cli: Cli, calls: Calls, tmp_path: Path) -> None:
    (job,) = die(calls, payload={"to": "nobody", "copies": 2})
    with editing(cli, job, tmp_path, "sed -i s/nobody/ada/ $1") as terminal:
        assert terminal.end() == 0
        assert f"{job}  ready with the new payload" in terminal.text
    assert cli.json("jobs", "show", job)["payload"] == {"to": "ada", "copies": 2}
    assert not list(tmp_path.glob("*.json"))


def test_an_unchanged_payload_changes_nothing(cli: Cli, calls: Calls, tmp_path: Path) -> None:
    (job,) = die(calls, payload={"to": "nobody"})
    with editing(cli, job, tmp_path, "true") as terminal:
        assert terminal.end() == 0
        assert "Payload not changed." in terminal.text
    assert cli.json("dead", "show", job)["state"] == "dead"
    assert not list(tmp_path.glob("*.json"))


def test_an_edit_that_is_refused_keeps_the_file(cli: Cli, calls: Calls, tmp_path: Path) -> None:
    calls.connection.execute("select trunkline.set_limit('user/{user}', '{\"concurrency\": 1}')")
    calls.register("limited", max_attempts=1, limits=["user/{user}"])
    (job,) = die(calls, task="limited", payload={"user": "ann"})
    with editing(cli, job, tmp_path, "sed -i s/user/name/ $1") as terminal:
        assert terminal.end() == 1
        assert LimitKeyMissing.code in terminal.text
        [line] = [row for row in terminal.text.splitlines() if row.startswith("Your payload is")]
    [file] = tmp_path.glob("*.json")
    assert json.loads(file.read_text()) == {"name": "ann"}
    assert file.stat().st_mode & 0o077 == 0
    words = shlex.split(line.partition("then: ")[2])
    assert words == ["trunkline", "dead", "edit", str(job), f"@{file}"]
    file.write_text('{"user": "bob"}')
    assert "ready with the new payload" in cli.text(*words[1:])


def test_text_from_the_editor_that_is_not_json_is_kept(
    cli: Cli, calls: Calls, tmp_path: Path
) -> None:
    (job,) = die(calls)
    with editing(cli, job, tmp_path, "echo broken > $1") as terminal:
        assert terminal.end() == 1
        assert "The payload is not JSON" in terminal.text
    [file] = tmp_path.glob("*.json")
    assert file.read_text() == "broken\n"
    assert cli.json("dead", "show", job)["state"] == "dead"


@contextmanager
def answering(database: Database, *, fail: bool) -> Iterator[None]:
    """A worker that ends every job of the queue: completes it, or lets it fail."""
    stopping = threading.Event()

    def work() -> None:
        calls = Calls(database.connect())
        while not stopping.is_set():
            attempts = calls.claim("answering", 100).attempts
            if attempts and fail:
                calls.batch("fail", "answering", attempts, errors=["{}"] * len(attempts))
            elif attempts:
                calls.batch("complete", "answering", attempts)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        stopping.set()
        worker.join()


def test_a_paced_replay_counts_what_became_of_the_jobs(
    cli: Cli, calls: Calls, database: Database
) -> None:
    die(calls, 4)
    with answering(database, fail=False):
        document = cli.json("dead", "replay", "--task", "once", "--rate", "2/s", "--yes")
    assert document["outcomes"] == {"replayed": 4}
    assert (document["stopped"], document["cursor"], document["failed"]) == (False, None, 0)
    # The last batch has no time to end.
    assert document["completed"] >= 2


def test_a_replay_of_too_few_to_stop_it_reports_that_too_many_failed_again(
    cli: Cli, calls: Calls, database: Database
) -> None:
    die(calls, 3)
    arguments = ("dead", "replay", "--task", "once", "--rate", "10/s", "--yes")
    with answering(database, fail=True):
        result = process(*arguments, "--stop-at", "10%", dsn=cli.dsn)
    assert result.returncode == 1
    assert result.stdout == "3 dead letters replayed; 0 completed, 3 failed again.\n"
    assert result.stderr == (
        "Too many failed again. That stops a replay only from --at-least on, which is 20."
        " Fix the cause first: trunkline dead groups.\n"
    )
    with answering(database, fail=False):
        result = process(*arguments, "--stop-at", "10%", dsn=cli.dsn)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_replay_stops_if_too_many_fail_again(cli: Cli, calls: Calls, database: Database) -> None:
    die(calls, 30)
    group = group_of(cli, "ValueError: no such address")
    arguments = ("dead", "replay", "--group", group, "--rate", "4/s", "--stop-at", "10%")
    with answering(database, fail=True):
        result = process(*arguments, "--at-least", 4, "--yes", dsn=cli.dsn)
    assert result.returncode == 1
    assert re.fullmatch(
        r"\d+ dead letters replayed; 0 completed, \d+ failed again\.\n", result.stdout
    )
    assert "replayed dead letters failed again" in result.stderr
    command = re.search(r"Continue with: (.*)", result.stderr)
    assert command is not None
    words = shlex.split(command[1])
    assert words[: len(arguments) + 1] == ["trunkline", *map(str, arguments)]
    assert words[-2] == "--cursor"
    left = cli.json("jobs", "count", "--state", "dead")[0]["jobs"]
    assert left >= 10
