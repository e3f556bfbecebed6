"""``trunkline scale`` and the command that it runs for changes."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import pytest

from tests.cli.driving import Cli
from tests.support.calls import Calls
from trunkline.cli.hook import Hook
from trunkline.model import WorkerTarget


def target(wanted: int, *tasks: str, queue: str = "default") -> WorkerTarget:
    return WorkerTarget(queue, list(tasks) or None, wanted, 2, 150, 7, None, 10_000)


class Recorder:
    """A hook command that appends to a file, and the messages of the hook."""

    def __init__(self, folder: Path, timeout: float = 30, body: str = "") -> None:
        self.file = folder / "calls"
        self.messages: list[str] = []
        self.now = 0.0
        script = folder / "hook.py"
        script.write_text(
            "import os, sys, time\n"
            "names = 'QUEUE TASKS WANTED BEFORE WORKERS STARTABLE RUNNING'.split()\n"
            "line = '|'.join(os.environ['SCALE_' + name] for name in names)\n"
            f"open({str(self.file)!r}, 'a').write(line + '\\n')\n{body}",
            encoding="utf-8",
        )
        command = f"'{sys.executable}' '{script}'"
        self.hook = Hook(command, timeout, self.messages.append, lambda: self.now)

    def lines(self) -> list[str]:
        return self.file.read_text(encoding="utf-8").splitlines() if self.file.exists() else []


def test_scale_lists_the_targets(cli: Cli, calls: Calls) -> None:
    calls.fill(150, task="send")
    text = cli.text("scale").splitlines()
    assert text[0].split() == ["QUEUE", "TASKS", "WANTED", "WORKERS", "STARTABLE", "RUNNING"]
    assert text[1].split() == ["mail", "send", "5", "0", "150", "0"]
    [row] = cli.json("scale")
    assert (row["queue"], row["tasks"], row["wanted"], row["counted_up_to"]) == (
        "mail",
        ["send"],
        5,
        10_000,
    )


def test_the_hook_runs_once_for_each_change(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    for wanted in (1, 1, 5, 5, 5):
        recorder.hook.see([target(wanted, "a", "b"), target(1, queue="other")])
    assert recorder.lines() == [
        "default|a,b|1||2|150|7",
        "other||1||2|150|7",
        "default|a,b|5|1|2|150|7",
    ]
    assert recorder.messages == []


def test_a_row_that_disappears_wants_no_worker(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.hook.see([target(5, "a")])
    recorder.hook.see([])
    recorder.hook.see([])
    recorder.hook.see([target(5, "a")])
    assert [line.split("|")[2:4] for line in recorder.lines()] == [["5", ""], ["0", "5"], ["5", ""]]


def test_a_failed_hook_is_shown_and_runs_again_later(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, body="print('no \\x1b[31mquota'); sys.exit(3)")
    recorder.hook.see([target(5)])
    recorder.now = 29
    recorder.hook.see([target(5)])
    assert len(recorder.lines()) == 1
    recorder.now = 30
    recorder.hook.see([target(5)])
    assert len(recorder.lines()) == 2
    assert len(recorder.messages) == 2
    assert recorder.messages[0].startswith("The hook failed with exit code 3. no ")
    assert "\x1b" not in recorder.messages[0]


def test_a_hook_that_hangs_is_stopped_with_its_children(tmp_path: Path) -> None:
    body = (
        "import subprocess\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "time.sleep(600)\n"
    )
    recorder = Recorder(tmp_path, timeout=2, body=body)
    recorder.hook.see([target(5)])
    assert recorder.messages == ["The hook was stopped after 2 seconds."]


def test_a_hook_that_cannot_start_is_shown(tmp_path: Path) -> None:
    messages: list[str] = []
    Hook(str(tmp_path / "nothing"), 1, messages.append).see([target(5)])
    assert messages[0].startswith("The hook could not be started: ")


@pytest.mark.parametrize("command", ["", "'"])
def test_a_hook_that_is_no_command_is_refused(command: str) -> None:
    with pytest.raises(click.BadParameter):
        Hook(command, 1, print)
