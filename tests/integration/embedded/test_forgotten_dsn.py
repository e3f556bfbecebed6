"""A forgotten connection string is noticed: one warning for each process, or a refusal."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.waiting import DEADLINE, until
from trunkline import Trunkline
from trunkline.embedded import pin, status
from trunkline.errors import DsnRequired, InvalidArgument, InvalidVariable

_WARNING = "TRUNKLINE_DSN is not set: using the embedded server in "

_APP = """
    import logging
    from trunkline import Trunkline

    app = Trunkline({arguments})


    @app.task
    async def send(to: str) -> str:
        return to


    @app.task(process=True)
    def scan(to: str) -> str:
        send.sync.enqueue(to=to)
        return to
"""


class Place:
    """A folder with an application, and a home for the embedded server that nobody else uses."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home.parent
        self.write()

    def write(self, arguments: str = "") -> None:
        """Write the application."""
        source = textwrap.dedent(_APP).replace("{arguments}", arguments)
        (self.folder / "shop.py").write_text(source, encoding="utf-8")

    def environment(self, **variables: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("TRUNKLINE_", "PG"))}
        return kept | {"TRUNKLINE_HOME": str(self.home), **variables}

    def python(self, source: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a script of an application that logs warnings to standard error."""
        return self._run(
            [sys.executable, "-c", "import logging; logging.basicConfig()\n" + source], variables
        )

    def trunkline(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command as users do."""
        return self._run([*_COMMAND, *arguments], variables)

    def _run(
        self, command: list[str], variables: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env=self.environment(**variables),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=4 * DEADLINE,
            check=False,
        )

    @contextmanager
    def running(self, *arguments: str, **variables: str) -> Iterator[Path]:
        """Run a command until the block ends; gives the file of its standard error."""
        log = self.folder / "stderr.log"
        with log.open("w", encoding="utf-8") as errors:
            process = subprocess.Popen(
                [*_COMMAND, *arguments],
                env=self.environment(**variables),
                cwd=self.folder,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
            try:
                yield log
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(timeout=2 * DEADLINE)


_COMMAND = [sys.executable, "-c", "from trunkline.cli.main import main; main()"]


@pytest.fixture
def place(home: Path) -> Place:
    return Place(home)


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
    with place.running("up", "shop:app", "--log", "json") as log:
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


def test_commands_tell_which_server_they_used(place: Place) -> None:
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


def test_an_application_can_require_a_connection_string(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUNKLINE_HOME", str(home))
    with pytest.raises(DsnRequired, match="embedded=False") as refused:
        Trunkline(embedded=False).sync.jobs.list()
    assert refused.value.code == "dsn_required"
    assert "TRUNKLINE_DSN" in refused.value.hint
    monkeypatch.setenv("TRUNKLINE_EMBEDDED", "off")
    with pytest.raises(DsnRequired, match="TRUNKLINE_EMBEDDED is off"):
        Trunkline().sync.jobs.list()
    # What the application says goes before the environment, as with the connection string.
    monkeypatch.setenv("TRUNKLINE_EMBEDDED", "1")
    with pytest.raises(DsnRequired):
        Trunkline(embedded=False).sync.jobs.list()
    assert not home.exists()


def test_an_asynchronous_client_requires_one_too(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUNKLINE_HOME", str(home))

    async def look() -> None:
        async with Trunkline(embedded=False) as app:
            await app.jobs.list()

    with pytest.raises(DsnRequired):
        asyncio.run(look())
    assert not home.exists()


def test_the_argument_goes_before_the_variable(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUNKLINE_HOME", str(home))
    monkeypatch.setenv("TRUNKLINE_EMBEDDED", "0")
    with Trunkline(embedded=True).sync as client:
        assert client.jobs.list() == []


def test_bad_values_are_refused_also_where_a_server_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRUNKLINE_EMBEDDED", "banana")
    with pytest.raises(InvalidVariable, match="banana") as refused:
        Trunkline("postgresql://127.0.0.1:1/x").sync.jobs.list()
    assert "TRUNKLINE_EMBEDDED to 0" in refused.value.hint
    with pytest.raises(InvalidArgument):
        Trunkline(embedded="0")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [
        ("jobs", "list"),
        ("schema", "install"),
        ("up",),
        ("up", "shop:app"),
        ("worker", "shop:app"),
        ("worker", "shop:app", "--processes", "2"),
        ("db", "psql", "-c", "select 1"),
    ],
)
def test_the_command_line_respects_the_variable(place: Place, arguments: tuple[str, ...]) -> None:
    ended = place.trunkline(*arguments, TRUNKLINE_EMBEDDED="0")
    assert ended.returncode == 1
    assert "Code: dsn_required" in ended.stderr
    assert "Set TRUNKLINE_DSN" in ended.stderr
    assert not place.home.exists()


@pytest.mark.parametrize("command", ["worker", "up"])
def test_a_worker_respects_the_application(place: Place, command: str) -> None:
    place.write("embedded=False")
    ended = place.trunkline(command, "shop:app")
    assert "Code: dsn_required" in ended.stderr
    # An empty string is a mistake, not a wish for the embedded server.
    place.write()
    assert place.trunkline(command, "shop:app", "--dsn", "").returncode == 1
    assert not place.home.exists()


def test_doctor_names_the_server(place: Place) -> None:
    pin(place.home)
    place.python("import shop; shop.app.sync.jobs.list()")
    checks = _checks(place)
    assert checks["embedded"]["level"] == "warn"
    assert "TRUNKLINE_DSN" in checks["embedded"]["hint"]
    assert f"embedded in {place.home}" in checks["connection"]["message"]
    assert _checks(place, TRUNKLINE_EMBEDDED="1")["embedded"]["level"] == "ok"
    secret = place.trunkline("db", "dsn", "--tcp").stdout.strip()
    checks = _checks(place, TRUNKLINE_DSN=secret)
    assert "embedded" not in checks
    # Passed on, it is still recognised; from another home it is a server like any other.
    assert f"embedded in {place.home}" in checks["connection"]["message"]
    elsewhere = _checks(place, TRUNKLINE_DSN=secret, TRUNKLINE_HOME=str(place.folder / "other"))
    port = status(place.home).port
    assert f"trunkline on 127.0.0.1, port {port}" in elsewhere["connection"]["message"]
    password = secret.partition("//")[2].partition(":")[2].partition("@")[0]
    assert password
    assert password not in json.dumps(elsewhere)


def _checks(place: Place, **variables: str) -> dict[str, dict[str, str]]:
    ended = place.trunkline("doctor", "--json", **variables)
    assert ended.stderr == ""
    return {check["check"]: check for check in json.loads(ended.stdout)["checks"]}


def test_errors_of_the_wrong_server_name_it(place: Place) -> None:
    pin(place.home)
    script = textwrap.dedent("""
        import asyncio, uuid
        from shop import app, send
        from trunkline.errors import UnknownJob, UnknownTask, WaitTimeout

        async def main():
            try:
                await app.jobs.enqueue("sned")
            except UnknownTask as error:
                print("1", error)
            try:
                app.sync.jobs.enqueue("sned")
            except UnknownTask as error:
                print("2", error)
            try:
                await app.jobs.get(uuid.uuid4())
            except UnknownJob as error:
                print("3", error)
            try:
                await app.jobs.cancel(uuid.uuid4())
            except UnknownJob as error:
                print("4", error)
            job = await send.enqueue(to="ann")
            try:
                await job.wait(timeout=0.01)
            except WaitTimeout as error:
                print("5", error.hint)
        asyncio.run(main())
    """)
    here = place.python(script, TRUNKLINE_EMBEDDED="1")
    assert [line[0] for line in here.stdout.splitlines()] == ["1", "2", "3", "4", "5"], here.stderr
    assert here.stdout.count(f"embedded in {place.home}") == 5
    secret = place.trunkline("db", "dsn", "--tcp").stdout.strip()
    there = place.python(script, TRUNKLINE_DSN=secret, TRUNKLINE_HOME="/nowhere")
    port = status(place.home).port
    assert there.stdout.count(f"127.0.0.1:{port}/trunkline") == 5, there.stderr
    password = secret.partition("//")[2].partition(":")[2].partition("@")[0]
    assert password not in there.stdout
    refused = place.trunkline("jobs", "enqueue", "sned", TRUNKLINE_EMBEDDED="1")
    assert f"server embedded in {place.home}" in refused.stderr


def test_a_database_without_our_schema_is_named(place: Place) -> None:
    pin(place.home)
    dsn = place.trunkline("db", "dsn").stdout.strip()
    refused = place.trunkline("jobs", "list", TRUNKLINE_DSN=dsn)
    assert f"no Trunkline schema: embedded in {place.home}" in refused.stderr
