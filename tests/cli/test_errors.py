"""Bad input as a new user meets it: one sentence, what to do, a code, and the right exit code."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.driving import PROGRAM, Cli, clean_environment, process
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.proxy import FaultProxy

UNKNOWN = "01a1e25f-29ce-7fa7-8447-dd90ad5e1fd4"


def told(result: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Error, hint and code; nothing on standard output, and no traceback."""
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    found = dict(line.split(": ", 1) for line in result.stderr.splitlines() if ": " in line)
    assert set(found) == {"Error", "Hint", "Code"}, result.stderr
    return found


@pytest.fixture
def home() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="trunkline-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


def test_no_server_given_and_no_programs_for_an_embedded_one(home: Path) -> None:
    result = process(
        *("queues", "list"),
        environment={"TRUNKLINE_HOME": str(home / "h"), "TRUNKLINE_PG_BINDIR": str(home)},
    )
    found = told(result)
    assert result.returncode == 1
    assert found["Code"] == "embedded_binaries_missing"
    assert "TRUNKLINE_DSN" in found["Hint"]


def test_wrong_password(home: Path) -> None:
    environment = {"TRUNKLINE_HOME": str(home / "h")}
    try:
        assert process("db", "start", environment=environment).returncode == 0
        right = process("db", "dsn", "--tcp", environment=environment).stdout.strip()
        head, _, place = right.partition("@")
        wrong = f"{head.rpartition(':')[0]}:wrong@{place}"
        result = process("queues", "list", dsn=wrong)
        found = told(result)
        assert result.returncode == 1
        assert found["Code"] == "access_denied"
        assert "password" in found["Error"]
        assert "password" in found["Hint"]
    finally:
        process("db", "stop", "--force", environment=environment)


def test_server_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    result = process("queues", "list", dsn=f"postgresql://me@127.0.0.1:{port}/shop")
    found = told(result)
    assert (result.returncode, found["Code"]) == (1, "database_unreachable")
    assert "TRUNKLINE_DSN" in found["Hint"]
    assert told(process("queues", "list", dsn="not a string"))["Code"] == "database_unreachable"


def test_unknown_role_and_database(database: Database) -> None:
    result = process("queues", "list", dsn=database.dsn.replace("trunkline_installer@", "nobody@"))
    assert told(result)["Code"] == "access_denied"
    result = process("queues", "list", dsn=database.server.dsn("nonsense"))
    assert "nonsense" in told(result)["Error"]


def test_server_in_recovery() -> None:
    """A server that starts says so in its first answer, whatever is asked."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        command = subprocess.Popen(
            [*PROGRAM, "queues", "list"],
            env=clean_environment(
                f"postgresql://me@127.0.0.1:{port}/shop?sslmode=disable&gssencmode=disable"
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        connection, _ = server.accept()
        with connection:
            connection.recv(4096)
            fields = b"SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0"
            connection.sendall(b"E" + (len(fields) + 4).to_bytes(4) + fields)
        out, error = command.communicate(timeout=300)
    result = subprocess.CompletedProcess(command.args, command.returncode, out, error)
    found = told(result)
    assert (result.returncode, found["Code"]) == (1, "server_not_ready")
    assert "starting up" in found["Error"]


def test_database_without_schema(database: Database) -> None:
    result = process("queues", "list", dsn=database.server.dsn("postgres"))
    found = told(result)
    assert (result.returncode, found["Code"]) == (1, "schema_missing")
    assert "trunkline schema install" in found["Hint"]


@pytest.mark.parametrize(
    ("path", "source", "message"),
    [
        ("nowhere:app", None, "There is no module nowhere"),
        ("jobs:nothing", "x = 1", "has no nothing"),
        ("jobs:x", "x = 1", "is int, not a Trunkline application"),
        ("jobs:app", "def broken(:", "SyntaxError"),
        ("jobs:app", "1 / 0", "ZeroDivisionError"),
        ("jobs:app", "import no_such_package", "no_such_package, which is not installed"),
        (":app", None, "does not name a module"),
    ],
)
@pytest.mark.parametrize("command", ["worker", "up"])
def test_application_that_cannot_be_loaded(
    command: str, path: str, source: str | None, message: str, tmp_path: Path
) -> None:
    if source is not None:
        (tmp_path / "jobs.py").write_text(source)
    result = process(command, path, dsn="postgresql://127.0.0.1:1/none", folder=tmp_path)
    found = told(result)
    assert (result.returncode, found["Code"]) == (2, "app_not_found")
    assert message in found["Error"]


def test_unknown_job(cli: Cli) -> None:
    result = process("jobs", "show", UNKNOWN, dsn=cli.dsn)
    found = told(result)
    assert (result.returncode, found["Code"]) == (1, "unknown_job")
    assert UNKNOWN in found["Error"]


def test_a_hint_for_an_unknown_name_lists_the_known_ones(cli: Cli) -> None:
    for arguments, listing in (
        (("jobs", "enqueue", "misspelt"), "trunkline tasks list"),
        (("workers", "drain", "nobody"), "trunkline workers list"),
    ):
        result = process(*arguments, dsn=cli.dsn)
        assert result.returncode == 1
        assert listing in told(result)["Hint"]


def test_an_empty_list_of_queues_is_not_all_of_them(tmp_path: Path) -> None:
    (tmp_path / "empty_queues.py").write_text(
        "from trunkline import Trunkline\napp = Trunkline()\n"
    )
    result = process("worker", "empty_queues:app", "--queues", "", folder=tmp_path)
    assert result.returncode == 2
    assert "leave the option out to mean all" in result.stderr


def test_errors_are_json_with_json(cli: Cli) -> None:
    def failed(*arguments: str, dsn: str | None = cli.dsn) -> dict[str, str]:
        result = process(*arguments, "--json", dsn=dsn)
        assert result.returncode in {1, 2}
        assert result.stdout == ""
        document = json.loads(result.stderr)
        assert list(document) == ["error"]
        error: dict[str, str] = document["error"]
        assert {"code", "message", "hint"} <= set(error)
        return error

    assert failed("jobs", "show", UNKNOWN)["code"] == "unknown_job"
    assert failed("jobs", "show", "nonsense")["code"] == "wrong_usage"
    assert failed("jobs", "enqueue", "nonsense")["code"] == "unknown_task"
    assert failed("queues", "list", dsn="postgresql://127.0.0.1:1/x")["code"] == (
        "database_unreachable"
    )


@pytest.mark.parametrize("command", ["jobs list --limit 1000", "jobs tail --lines 1500"])
def test_a_reader_that_leaves_is_no_error(cli: Cli, calls: Calls, command: str) -> None:
    # More than a pipe holds, so that writing fails while there is something to write.
    calls.fill(500, task="send")
    program = f"{sys.executable} -c 'from trunkline.cli.main import main; main()'"
    result = subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", f"{program} {command} --json | head -c 1 | wc -c"],
        env=clean_environment(cli.dsn),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (result.returncode, result.stdout.strip(), result.stderr) == (0, "1", "")


def test_a_lost_connection_while_watching_is_waited_out(database: Database, cli: Cli) -> None:
    with FaultProxy.before(database.dsn) as proxy:
        watching = subprocess.Popen(
            [*PROGRAM, "queues", "list", "--watch", "--json"],
            env=clean_environment(proxy.dsn(database.dsn)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert watching.stdout is not None
            assert watching.stderr is not None
            assert json.loads(watching.stdout.readline()) is not None
            proxy.cut()
            assert watching.stderr.readline().startswith("Lost the server: ")
            assert watching.stderr.readline() == "The server is back\n"
            cli.text("queues", "pause", "again")
            while not any(
                row["queue"] == "again" for row in json.loads(watching.stdout.readline())
            ):
                pass
        finally:
            watching.kill()
            watching.communicate()
