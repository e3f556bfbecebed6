"""A forgotten connection string is noticed: one warning for each process."""

from __future__ import annotations

import json
import textwrap

import pytest

from tests.cli.terminal import PROGRAM, Terminal
from tests.integration.embedded.place import Place
from tests.support.waiting import until
from trunkline.embedded import pin, status

_WARNING = "TRUNKLINE_DSN is not set: using the embedded server in "


def warnings(text: str) -> int:
    return text.count(_WARNING)


def test_the_doctor_in_the_same_process_does_not_swallow_the_warning(place: Place) -> None:
    """The doctor reports the server itself and logs nothing; the application still has to."""
    ended = place.python(
        textwrap.dedent("""
            import contextlib, sys
            from trunkline import Trunkline
            from trunkline.cli.doctor import doctor

            with contextlib.suppress(SystemExit):
                doctor.main([], standalone_mode=False)
            print("DOCTOR DONE", file=sys.stderr, flush=True)
            Trunkline().sync.jobs.list()
        """)
    )
    before, _, after = ended.stderr.partition("DOCTOR DONE")
    assert (warnings(before), warnings(after)) == (0, 1), ended.stderr


def test_an_application_warns_once_for_each_process(place: Place) -> None:
    ended = place.python(
        textwrap.dedent("""
            import asyncio, os, threading
            from shop import app, send
            from trunkline import Trunkline

            asyncio.run(send.enqueue(to="ann"))
            threads = [threading.Thread(target=Trunkline().sync.jobs.list) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            child = os.fork()
            if child == 0:
                print(len(app.sync.jobs.list()), flush=True)
                os._exit(0)
            os.waitpid(child, 0)
        """)
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "1\n"
    assert ended.stderr.count("WARNING:trunkline.embedded:") == 1
    assert warnings(ended.stderr) == 1
    # It names the server, and what to set.
    assert str(place.home) in ended.stderr
    assert "TRUNKLINE_EMBEDDED=0" in ended.stderr


def test_threads_that_connect_at_the_same_time_warn_once(place: Place) -> None:
    ended = place.python(
        textwrap.dedent("""
            import threading
            from trunkline import Trunkline

            start = threading.Barrier(8)
            def look():
                start.wait()
                Trunkline().sync.jobs.list()
            threads = [threading.Thread(target=look) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        """)
    )
    assert ended.returncode == 0, ended.stderr
    assert warnings(ended.stderr) == 1


def test_the_warning_breaks_no_word_in_a_terminal(place: Place) -> None:
    with Terminal(*PROGRAM, "queues", "list", home=place.home, columns=80) as shown:
        assert shown.end() == 0
        lines = [line.rstrip() for line in shown.screen.display]
    start = next(n for n, line in enumerate(lines) if line.startswith(_WARNING[:20]))
    text = " ".join(lines[start : start + 4])
    for part in ("which other machines cannot reach.", "TRUNKLINE_EMBEDDED=1 if this is intended"):
        assert part in text, lines


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_variable_is_as_good_as_none(place: Place, empty: str) -> None:
    ended = place.python("import shop; shop.app.sync.jobs.list()", TRUNKLINE_DSN=empty)
    assert ended.returncode == 0, ended.stderr
    assert warnings(ended.stderr) == 1


def test_an_embedded_server_that_was_chosen_is_no_warning(place: Place) -> None:
    pin(place.home)
    for source, variables in (
        ("import shop; shop.app.sync.jobs.list()", {"TRUNKLINE_EMBEDDED": "1"}),
        ("from trunkline import Trunkline; Trunkline(embedded=True).sync.jobs.list()", {}),
    ):
        ended = place.python(source, **variables)
        assert (ended.returncode, ended.stderr) == (0, "")
    # Its connection string, passed on, is a choice as well.
    dsn = place.trunkline("db", "dsn").stdout.strip()
    ended = place.python("import shop; shop.app.sync.jobs.list()", TRUNKLINE_DSN=dsn)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_worker_and_its_processes_warn_once(place: Place) -> None:
    with place.running("worker", "shop:app", "--processes", "2") as log:
        until(lambda: log.read_text().count("worker ready") == 2, "two workers")
        # A handler in its own process enqueues through the application.
        enqueued = place.trunkline("jobs", "enqueue", "scan", '{"to": "ann"}', "--wait")
        assert enqueued.returncode == 0, enqueued.stderr + log.read_text()
        until(lambda: _completed(place, "send"), "the job that the handler enqueued")
    assert warnings(log.read_text()) == 1
    assert not status(place.home).running


def test_up_warns_once_in_the_form_of_its_log(place: Place) -> None:
    with place.running("up", "--no-api", "shop:app", "--log", "json") as log:
        until(lambda: "worker ready" in log.read_text(), "the worker")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    (line,) = [line for line in lines if _WARNING in line["message"]]
    assert line["level"] == "warning"


def test_a_server_given_to_a_worker_is_the_one_of_its_handlers(place: Place) -> None:
    pin(place.home)
    dsn = place.trunkline("db", "dsn").stdout.strip()
    assert place.trunkline("schema", "install", "--dsn", dsn).returncode == 0
    other = str(place.folder / "other")
    with place.running("worker", "shop:app", "--dsn", dsn, TRUNKLINE_HOME=other) as log:
        until(lambda: "worker ready" in log.read_text(), "the worker")
        place.trunkline("jobs", "enqueue", "scan", '{"to": "ann"}', TRUNKLINE_DSN=dsn)
        until(lambda: _completed(place, "send"), "the job that the handler enqueued")
    assert warnings(log.read_text()) == 0
    assert not status(other).running


def _completed(place: Place, task: str) -> bool:
    listed = place.trunkline(
        "jobs", "list", "--task", task, "--state", "completed", "--json", TRUNKLINE_EMBEDDED="1"
    )
    return bool(json.loads(listed.stdout))


def test_commands_name_the_server_they_used(place: Place) -> None:
    listed = place.trunkline("jobs", "list")
    assert warnings(listed.stderr) == 1
    assert str(place.home) in listed.stderr
    as_json = place.trunkline("jobs", "list", "--json")
    assert json.loads(as_json.stdout) == []
    (line,) = as_json.stderr.splitlines()
    assert _WARNING in json.loads(line)["warning"]["message"]


def test_commands_about_the_embedded_server_are_silent(place: Place) -> None:
    for arguments in (("start",), ("psql", "-c", "select 1"), ("dsn",), ("status",), ("stop",)):
        ended = place.trunkline("db", *arguments)
        assert (ended.returncode, ended.stderr) == (0, ""), arguments


def test_the_demonstration_is_silent(place: Place) -> None:
    ended = place.trunkline("demo", "--json", "--seconds", "5")
    assert ended.returncode == 0, ended.stderr
    assert warnings(ended.stderr) == 0


def test_a_sandbox_is_silent(place: Place) -> None:
    ended = place.python(
        textwrap.dedent("""
            from shop import app, send
            from trunkline.testing import Sandbox

            with Sandbox(app):
                send.sync.enqueue(to="ann")
        """),
        TRUNKLINE_EMBEDDED="0",
    )
    assert (ended.returncode, ended.stderr) == (0, "")
