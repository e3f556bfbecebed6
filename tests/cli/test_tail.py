"""``trunkline jobs tail``: every line once."""

from __future__ import annotations

import json
import select
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.cli.driving import PROGRAM, Cli, clean_environment, die, finish
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.proxy import FaultProxy
from trunkline.cli.connection import Session
from trunkline.model import ActivityLine, Recently
from trunkline.operate.single import SingleCaller

KEYS = "at event job_id attempt state task queue tenant worker took run_at reason error detail"


class Tail:
    """A follower in this process, asked for news by hand."""

    def __init__(self, dsn: str, lines: int = 0, **filters: Any) -> None:
        self.session = Session(dsn)
        activity = self.session.watcher.activity
        chosen = {"task": None, "queue": None, "states": ()} | filters
        # `follow` looks on its own; these tests decide when.
        self.follower = activity._follower(**chosen)  # noqa: SLF001 - see above
        self.history = self.follower.history(lines)

    def news(self) -> list[ActivityLine]:
        return self.follower.news()


@pytest.fixture
def tail(database: Database, calls: Calls) -> Iterator[Tail]:
    made = Tail(database.dsn)
    yield made
    made.session.close()


def told(lines: list[ActivityLine]) -> list[tuple[str, str]]:
    return [(line.event, str(line.job_id)) for line in lines]


def test_a_smooth_job_is_three_lines(tail: Tail, calls: Calls) -> None:
    (job,) = finish(calls)
    lines = tail.news()
    assert told(lines) == [
        ("enqueued", str(job)),
        ("started", str(job)),
        ("completed", str(job)),
    ]
    assert [line.state for line in lines] == ["ready", "running", "completed"]
    assert lines[2].took is not None
    assert tail.news() == []


def test_each_step_is_printed_when_it_happens(tail: Tail, calls: Calls) -> None:
    job = calls.enqueue("send").job_id
    assert told(tail.news()) == [("enqueued", str(job))]
    attempts = calls.claim("w").attempts
    (started,) = tail.news()
    assert (started.event, started.worker, started.attempt) == ("started", "w", 1)
    error = {"type": "OSError", "message": "no route"}
    calls.batch("fail", "w", attempts, errors=[Jsonb(error)])
    (failed,) = tail.news()
    assert (failed.event, failed.state, failed.error) == ("failed", "scheduled", error)
    assert failed.run_at is not None
    assert failed.run_at > failed.at
    calls.change("cancel", job, "enough")
    (cancelled,) = tail.news()
    assert (cancelled.event, cancelled.reason) == ("cancelled", "enough")
    assert tail.news() == []


def test_events_and_rows_of_audited_tasks_are_one_line_each(tail: Tail, calls: Calls) -> None:
    finish(calls, 3, task="watched")
    assert Counter(line.event for line in tail.news()) == {
        "enqueued": 3,
        "started": 3,
        "completed": 3,
    }


def test_a_death_is_printed_once(tail: Tail, calls: Calls) -> None:
    (job,) = die(calls)
    lines = tail.news()
    assert [(line.event, line.state) for line in lines] == [
        ("enqueued", "ready"),
        ("started", "running"),
        ("failed", "dead"),
    ]
    calls.change("retry", job)
    assert [line.event for line in tail.news()] == ["replayed"]


def test_an_acknowledged_dead_letter_does_not_die_again(
    database: Database, calls: Calls, tail: Tail
) -> None:
    (job,) = die(calls)
    only_dead = Tail(database.dsn, lines=10, states=frozenset({"dead"}))
    cli = Cli(database.dsn)
    cli.text("dead", "acknowledge", job)
    assert [line.event for line in only_dead.history] == ["failed"]
    assert only_dead.news() == []
    assert [line.event for line in tail.news()][-1] == "acknowledged"
    only_dead.session.close()


def test_a_late_commit_is_printed_late(tail: Tail, database: Database, calls: Calls) -> None:
    slow = database.connect(autocommit=False)
    (early,) = Calls(slow).fill(1, task="send")
    (later,) = calls.fill(1, task="send")
    assert told(tail.news()) == [("enqueued", str(later))]
    assert tail.news() == []
    slow.commit()
    assert told(tail.news()) == [("enqueued", str(early))]
    assert tail.news() == []


def test_a_very_late_commit_is_found_by_the_far_scans(
    tail: Tail, database: Database, calls: Calls
) -> None:
    slow = database.connect(autocommit=False)
    (early,) = Calls(slow).fill(1, task="send")
    # The engine's clock moves, so that the short look no longer reaches back to it.
    for _ in range(3):
        database.move_time("12 seconds")
        assert tail.news() == []
    slow.commit()
    found: list[ActivityLine] = []
    for _ in range(3):
        database.move_time("6 seconds")
        found += tail.news()
    assert told(found) == [("enqueued", str(early))]


def test_nothing_is_dropped_too_early(tail: Tail, database: Database, calls: Calls) -> None:
    lines: list[ActivityLine] = []
    for turn in range(12):
        finish(calls, 2)
        lines += tail.news()
        if turn % 2:
            database.move_time("9 seconds")
    assert Counter(line.event for line in lines) == {
        "enqueued": 24,
        "started": 24,
        "completed": 24,
    }


def test_a_time_without_server_loses_nothing(tail: Tail, database: Database, calls: Calls) -> None:
    finish(calls)
    assert len(tail.news()) == 3
    (job,) = finish(calls)
    database.move_time("10 minutes")
    with psycopg.connect(database.superuser_dsn, autocommit=True) as admin:
        admin.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name = 'trunkline cli' and datname = current_database()"
        )
    assert told(tail.news()) == [
        ("enqueued", str(job)),
        ("started", str(job)),
        ("completed", str(job)),
    ]


def test_history_comes_first_and_is_not_printed_again(database: Database, calls: Calls) -> None:
    finish(calls, 4)
    tail = Tail(database.dsn, 5)
    assert len(tail.history) == 5
    assert [line.event for line in tail.history] == ["started"] + ["completed"] * 4
    assert tail.history == sorted(tail.history, key=lambda line: line.at)
    assert tail.news() == []
    (job,) = calls.fill(1, task="send")
    assert told(tail.news()) == [("enqueued", str(job))]
    tail.session.close()


def test_what_happens_while_history_is_read_is_news(
    database: Database, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish(calls)
    between: list[UUID] = []
    run_with = SingleCaller.run_with

    def interrupted(caller: SingleCaller, *arguments: Any) -> Any:
        answer = run_with(caller, *arguments)
        # After the first look at jobs, which decides what is history.
        if isinstance(answer, Recently) and not between:
            between.extend(finish(calls))
        return answer

    monkeypatch.setattr(SingleCaller, "run_with", interrupted)
    tail = Tail(database.dsn, 10)
    assert {line.job_id for line in tail.history}.isdisjoint(between)
    assert [(line.event, line.job_id) for line in tail.news()] == [
        ("enqueued", between[0]),
        ("started", between[0]),
        ("completed", between[0]),
    ]
    tail.session.close()


def test_history_reaches_back_a_day(database: Database, calls: Calls) -> None:
    (job,) = finish(calls)
    database.move_time("5 hours")
    tail = Tail(database.dsn, 10)
    assert told(tail.history) == [
        ("enqueued", str(job)),
        ("started", str(job)),
        ("completed", str(job)),
    ]
    assert tail.news() == []
    tail.session.close()


def test_filters(database: Database, calls: Calls) -> None:
    by_queue = Tail(database.dsn, queue="mail")
    by_task = Tail(database.dsn, task="once")
    by_state = Tail(database.dsn, states=frozenset({"dead", "completed"}))
    finish(calls)
    die(calls)
    assert {line.task for line in by_queue.news()} == {"send"}
    assert {line.task for line in by_task.news()} == {"once"}
    assert [line.state for line in by_state.news()] == ["completed", "dead"]
    later = Tail(database.dsn, 10, states=frozenset({"dead"}))
    assert [line.state for line in later.history] == ["dead"]
    for tail in (by_queue, by_task, by_state, later):
        tail.session.close()


def delays(lines: list[ActivityLine]) -> list[timedelta | None]:
    return [
        None if line.run_at is None else line.run_at - line.at
        for line in lines
        if line.event == "enqueued"
    ]


def test_a_delay_is_reported_also_if_its_line_comes_late(
    tail: Tail, database: Database, calls: Calls
) -> None:
    """The job was committed late, was promoted, runs or has ended by then."""
    delay = timedelta(minutes=10)
    slow = database.connect(autocommit=False)
    Calls(slow).enqueue("send", delay="10 minutes")
    assert tail.news() == []
    slow.commit()
    assert delays(tail.news()) == [delay]
    calls.enqueue("watched", delay="10 minutes")
    database.move_time("11 minutes")
    calls.connection.execute("select trunkline.run_duties()")
    promoted = Tail(database.dsn, 100)
    assert delays(promoted.history) == [delay, delay]
    attempts = calls.claim("w", 2).attempts
    assert len(attempts) == 2
    running = Tail(database.dsn, 100)
    assert delays(running.history) == [delay, delay]
    calls.batch("complete", "w", attempts)
    ended = Tail(database.dsn, 100)
    assert delays(ended.history) == [delay, delay]
    for late in (promoted, running, ended):
        late.session.close()


def test_the_delay_of_a_retry_is_not_one_of_the_enqueue(database: Database, calls: Calls) -> None:
    calls.enqueue("send")
    calls.batch("fail", "w", calls.claim("w").attempts, errors=[Jsonb({"type": "OSError"})])
    late = Tail(database.dsn, 100)
    assert delays(late.history) == [None]
    late.session.close()


def test_the_command_prints_lines(cli: Cli, calls: Calls) -> None:
    (job,) = finish(calls)
    (dead,) = die(calls)
    calls.enqueue("send", delay="1 hour")
    lines = cli.text("jobs", "tail", "--no-follow").splitlines()
    words = [line.split()[1:3] for line in lines]
    assert words == [
        ["enqueued", str(job)],
        ["started", str(job)],
        ["completed", str(job)],
        ["enqueued", str(dead)],
        ["started", str(dead)],
        ["dead", str(dead)],
        ["enqueued", words[6][1]],
    ]
    assert "send [mail] #1" in lines[2]
    # Once is enough: the other lines of an attempt have its number.
    assert [" on finisher" in line for line in lines[:3]] == [False, True, False]
    assert "ValueError: no such address" in lines[5]
    assert lines[6].endswith("in 1h")
    assert cli.text("jobs", "tail", "--no-follow", "-n", 0) == ""


def test_json_lines_have_stable_keys(cli: Cli, calls: Calls) -> None:
    finish(calls)
    lines = [
        json.loads(line) for line in cli.text("jobs", "tail", "--no-follow", "--json").splitlines()
    ]
    assert list(lines[0]) == KEYS.split()
    assert lines[2]["took"] < timedelta(minutes=1).total_seconds()


@contextmanager
def following(dsn: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*PROGRAM, "jobs", "tail", "--lines", "0", "--json", *options],
        env=clean_environment(dsn),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_following_a_storm_prints_each_line_once(database: Database, calls: Calls) -> None:
    with following(database.dsn, "--queue", "mail") as process:
        assert process.stdout is not None
        # What is enqueued before the first look is history; the first line tells that it follows.
        others = {str(calls.enqueue("send").job_id)}
        while not select.select([process.stdout], [], [], 0.1)[0]:
            others.add(str(calls.enqueue("send").job_id))
        lines: list[dict[str, Any]] = [json.loads(process.stdout.readline())]
        expected: Counter[tuple[str, str]] = Counter()
        jobs = calls.fill(300, task="send")
        while claimed := calls.claim("w", 50).attempts:
            calls.batch("complete", "w", claimed)
        last = calls.enqueue("send").job_id
        while lines[-1]["job_id"] != str(last):
            lines.append(json.loads(process.stdout.readline()))
        for job in jobs:
            expected.update((event, str(job)) for event in ("enqueued", "started", "completed"))
        found = Counter(
            (line["event"], line["job_id"])
            for line in lines
            if line["job_id"] not in others | {str(last)}
        )
        assert found == expected


def test_a_lost_server_is_reported_once_and_followed_again(
    database: Database, calls: Calls
) -> None:
    with FaultProxy.before(database.dsn) as proxy, following(proxy.dsn(database.dsn)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        while not select.select([process.stdout], [], [], 0.1)[0]:
            calls.enqueue("send")
        proxy.cut()
        assert process.stderr.readline().startswith("Lost the server: ")
        assert process.stderr.readline() == "The server is back\n"
        last = str(calls.enqueue("once").job_id)
        while json.loads(process.stdout.readline())["job_id"] != last:
            pass
        process.terminate()
        assert process.stderr.read() == ""
