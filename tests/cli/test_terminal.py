"""The command line in a pseudo-terminal: live tables, progress, prompts, narrow screens."""

from __future__ import annotations

import re
import signal
from uuid import UUID

import pytest

from tests.cli.driving import PROGRAM, Cli, die, finish
from tests.cli.terminal import Terminal
from tests.support.calls import Attempt, Calls


def terminal(cli: Cli, *arguments: object, columns: int = 100, lines: int = 30) -> Terminal:
    given = [str(argument) for argument in arguments]
    return Terminal(*PROGRAM, *given, dsn=cli.dsn, columns=columns, lines=lines)


def advance(calls: Calls, attempt: Attempt, percent: int, message: str) -> None:
    calls.value(
        "select trunkline.progress(p_worker => %s, p_job => %s, p_attempt => %s,"
        " p_percent => %s, p_message => %s)",
        attempt.worker,
        attempt.job,
        attempt.number,
        percent,
        message,
    )


def fill_with_long_names(cli: Cli, calls: Calls) -> UUID:
    (dead,) = die(calls, message="x" * 300)
    calls.fill(2, task="send", tenant="t" * 50)
    calls.value("select trunkline.register_worker(%s)", "w" * 100)
    calls.value("select trunkline.set_schedule(%s, '@daily', 'send')", "s" * 80)
    cli.text("queues", "pause", "mail", "--reason", "r" * 200)
    limit = f"{'l' * 80}/{{key}}"
    cli.text("limits", "set", limit, "--concurrency", 1, "--reason", "r" * 200)
    cli.text("limits", "pause", limit, "--reason", "r" * 200)
    cli.text("quotas", "set", "q" * 80, "--amount", "20GiB")
    cli.text("breakers", "set", "b" * 80)
    cli.text("breakers", "trip", "b" * 80, "--reason", "r" * 200)
    return dead


def test_a_live_table_follows_and_ends_on_ctrl_c(cli: Cli, calls: Calls) -> None:
    calls.fill(3, task="send")
    with terminal(cli, "queues", "list", "--watch") as shown:
        shown.until("QUEUE", "mail", "3")
        calls.fill(1200, task="send")
        screen = shown.until("1,203")
        # Redrawn in place: there is one table.
        assert screen.count("QUEUE") == 1
        calls.claim("w", 3)
        shown.until("1,200")
        shown.interrupt()
        assert shown.end() == 0
        # What was there last stays, the cursor is back, and nothing complains.
        assert "1,200" in shown.text
        assert "Interrupted" not in shown.text
        assert shown.raw.rindex(b"\x1b[?25h") > shown.raw.rindex(b"\x1b[?25l")


def test_live_lists_of_jobs_and_workers(cli: Cli, calls: Calls) -> None:
    (job,) = calls.fill(1, task="send")
    with terminal(cli, "jobs", "list", "--watch") as shown:
        shown.until(str(job), "ready")
        calls.claim("w")
        shown.until(str(job), "running")
        shown.interrupt()
        assert shown.end() == 0
    with terminal(cli, "workers", "list", "--watch") as shown:
        shown.until("WORKER")
        calls.value("select trunkline.register_worker('fresh')")
        shown.until("fresh", "active")
        shown.interrupt()
        assert shown.end() == 0


def test_a_live_list_longer_than_the_screen_keeps_its_head(cli: Cli, calls: Calls) -> None:
    calls.fill(60, task="send")
    with terminal(cli, "jobs", "list", "--watch", "--limit", 60, lines=12) as shown:
        shown.until("JOB", "ready")
        (newest,) = calls.fill(1, task="once")
        screen = shown.until("JOB", str(newest))
        assert screen.splitlines()[0].startswith("JOB")
        shown.interrupt()
        assert shown.end() == 0


def test_the_progress_bar_moves_and_the_watch_ends_with_the_job(cli: Cli, calls: Calls) -> None:
    (job,) = calls.fill(1, task="send")
    (attempt,) = calls.claim("w").attempts
    advance(calls, attempt, 10, "begun")

    def filled(screen: str) -> int:
        (line,) = [line for line in screen.splitlines() if line.startswith("progress")]
        return int(re.findall(r"(\d+)%", line)[0])

    with terminal(cli, "jobs", "show", job, "--watch") as shown:
        assert filled(shown.until(" 10%", "begun")) == 10
        advance(calls, attempt, 85, "nearly")
        assert filled(shown.until(" 85%", "nearly")) == 85
        assert "━" in shown.text
        calls.batch("complete", "w", [attempt])
        assert shown.end() == 0
        assert "completed" in shown.text


def test_tail_follows_in_colour(cli: Cli, calls: Calls) -> None:
    (old,) = finish(calls)
    with terminal(cli, "jobs", "tail", columns=120) as shown:
        shown.until(f"completed {old}")
        (job,) = calls.fill(1, task="send")
        shown.until(f"enqueued  {job}")
        attempts = calls.claim("w").attempts
        shown.until(f"started   {job}")
        calls.batch("complete", "w", attempts)
        shown.until(f"completed {job}")
        (dead,) = die(calls)
        shown.until(f"dead      {dead}", "no such address")
        assert b"\x1b[32m" in shown.raw
        shown.interrupt()
        assert shown.end() == 0
        assert shown.text.count(str(job)) == 3


@pytest.mark.parametrize(("answer", "left"), [("n", "dead"), ("", "dead"), ("y", "ready")])
def test_a_question_is_asked_before_many_are_replayed(
    cli: Cli, calls: Calls, answer: str, left: str
) -> None:
    die(calls, 2)
    with terminal(cli, "dead", "replay", "--all") as shown:
        shown.until("Replay 2 dead letters? [y/N]:")
        shown.type(answer + "\r")
        code = shown.end()
    assert code == (0 if left == "ready" else 130)
    assert {job["state"] for job in cli.json("jobs", "list")} == {left}


def test_ctrl_c_at_a_question_changes_nothing(cli: Cli, calls: Calls) -> None:
    (job,) = die(calls)
    with terminal(cli, "dead", "discard", job) as shown:
        shown.until("Discard 1 dead letter?")
        assert shown.end_at_a_question() == 130
    assert len(cli.json("dead", "list")) == 1


@pytest.mark.parametrize("columns", [40, 60])
@pytest.mark.parametrize(
    "command",
    [
        "jobs list",
        "queues list",
        "workers list",
        "dead list",
        "schedules list",
        "tasks list",
        "duties list",
        "settings list",
        "limits list",
        "quotas list",
        "breakers list",
        "log",
        "doctor",
    ],
)
def test_narrow_terminals(cli: Cli, calls: Calls, columns: int, command: str) -> None:
    fill_with_long_names(cli, calls)
    with terminal(cli, *command.split(), columns=columns, lines=80) as shown:
        code = shown.end()
    # Each row is one line of the screen: none of the lines that were sent is longer than that.
    sent = re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", shown.raw).decode().splitlines()
    assert code in {0, 1}
    assert max(len(line) for line in sent) <= columns, sent
    assert "Traceback" not in shown.text


def test_what_matters_is_whole_in_60_columns(cli: Cli, calls: Calls) -> None:
    dead = fill_with_long_names(cli, calls)
    wanted = {
        ("jobs", "list"): f"{str(dead)[:18]}",
        ("dead", "list"): str(dead)[:18],
        ("jobs", "show", dead): str(dead),
        ("duties", "list"): "maintain_partitions",
        ("schedules", "list"): "@daily",
    }
    for command, text in wanted.items():
        with terminal(cli, *command, columns=60) as shown:
            shown.end()
            assert text in shown.text


def test_at_80_columns_the_error_gets_the_room(cli: Cli, calls: Calls) -> None:
    """Ids are cut to what tells them apart, so that an error can be read."""
    message = "the provider refused the address of the customer"
    (dead,) = die(calls, message=message, queue="letters")
    ready = calls.enqueue("send").job_id
    for command, columns in (("jobs list", 1), ("dead list", 0), ("dead groups", None)):
        with terminal(cli, *command.split(), columns=80) as shown:
            assert shown.end() == 0
        title, *rows = shown.text.splitlines()
        assert max(map(len, rows)) <= 80
        [row] = [row for row in rows if "ValueError: the provider refu" in row]
        assert title.split()[-1] in {"WHAT", "WHY", "ERROR"}
        if columns is not None:
            assert row.split()[0] == str(dead)[:18]
            assert cli.json("jobs", "show", row.split()[0])["job_id"] == str(dead)
            assert len(rows) == 1 + columns
        else:
            group = row.split()[0]
            assert len(group) == 8
            [job] = cli.json("dead", "list", "--group", group)
            assert job["job_id"] == str(dead)
    assert str(ready) in cli.text("jobs", "list")


def test_a_wide_terminal_shows_whole_ids(cli: Cli, calls: Calls) -> None:
    (dead,) = die(calls)
    with terminal(cli, "dead", "list", columns=160) as shown:
        assert shown.end() == 0
        assert str(dead) in shown.text


def test_short_ids_of_shown_jobs_differ(cli: Cli, calls: Calls) -> None:
    """Ids of a batch have the same start."""
    calls.fill(4, task="send", tenant="t" * 60)
    with terminal(cli, "jobs", "list", columns=60) as shown:
        assert shown.end() == 0
    ids = [row.split()[0] for row in shown.text.splitlines()[1:]]
    assert len({*ids}) == 4
    for text in ids:
        assert cli.json("jobs", "show", text)


def test_a_terminal_that_goes_away_ends_it(cli: Cli, calls: Calls) -> None:
    with terminal(cli, "queues", "list", "--watch") as shown:
        shown.until("QUEUE")
        shown.process.send_signal(signal.SIGTERM)
        assert shown.end() == -signal.SIGTERM


def test_errors_are_coloured_for_people(cli: Cli) -> None:
    with terminal(cli, "jobs", "show", UUID(int=0)) as shown:
        assert shown.end() == 1
        assert b"\x1b[31m\x1b[1mError:" in shown.raw
        assert "Hint: Check the id" in shown.text


@pytest.mark.parametrize(
    "command", ["queues list", "doctor", "jobs tail --no-follow", "jobs show x"]
)
def test_without_colour(cli: Cli, calls: Calls, command: str) -> None:
    (job,) = finish(calls)
    given = command.replace(" x", f" {job}").split()
    with Terminal("/usr/bin/env", "NO_COLOR=1", *PROGRAM, *given, dsn=cli.dsn) as shown:
        assert shown.end() in {0, 1}
        assert shown.text
        assert not re.search(rb"\x1b\[[0-9;]*3[0-9]m", shown.raw)
