"""``trunkline profile``: what operators type, and what programs read."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.proxy import FaultProxy
from tests.support.waiting import until

TRUNKLINE = str(Path(sys.executable).with_name("trunkline"))


def trunkline(
    database: Database, *arguments: str, code: int = 0
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [TRUNKLINE, "profile", *arguments],
        env=os.environ | {"TRUNKLINE_DSN": database.dsn},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def answer(database: Database, *arguments: str, code: int = 0) -> Any:
    return json.loads(trunkline(database, *arguments, "--json", code=code).stdout)


def test_from_installation_to_roll_back(database: Database) -> None:
    """RC-40, RC-42, RC-60: install, status, validate, roll back, and all again."""
    assert "executor" in trunkline(database, "list").stdout
    assert answer(database, "list")[0]["phases"][0]["core"] is True
    assert "missing" in trunkline(database, "status", "executor", code=1).stdout
    first = answer(database, "install", "executor")
    assert first == {"applied": ["phase1/record", "phase1/reclaim", "phase1/wrappers"]}
    trunkline(database, "status", "executor")
    assert "phase3/views" in trunkline(database, "install", "executor", "--phase", "3").stdout
    assert "phase2/heartbeat" in trunkline(database, "install", "executor", "--all").stdout
    assert "Nothing to do" in trunkline(database, "install", "executor", "--all").stdout
    assert trunkline(database, "validate", "executor").stdout.count("passed") == 5
    assert [check["passed"] for check in answer(database, "validate", "executor")] == [True] * 5
    assert "process_orchestrator_jobs" in trunkline(database, "wake", "executor", "--once").stdout
    assert "nothing is due" in trunkline(database, "wake", "executor", "--once").stdout
    steps = answer(database, "rollback", "executor", "--yes")["steps"]
    assert steps[0] == "restore_wrappers"
    assert {state["state"] for state in answer(database, "status", "executor", code=1)} == {
        "applied",
        "missing",
    }
    trunkline(database, "rollback", "executor", "--purge", "--yes")
    assert (
        "The profile was not installed"
        in trunkline(database, "rollback", "executor", "--yes").stdout
    )


def test_rc_56_troubleshooting_from_the_command_line(database: Database) -> None:
    """RC-56, RC-57, RC-58: all topics, or one, with the SQL if one wants it."""
    trunkline(database, "install", "executor")
    trunkline(database, "wake", "executor", "--once")
    text = trunkline(database, "troubleshoot", "executor", "stuck", "--sql").stdout
    assert "last ten wake-ups" in text
    assert "from executor.executor_cycles" in text
    producer = Calls(database.connect("trunkline_producer"))
    producer.value("select executor.enqueue_job('run_tsa')")
    Calls(database.connect("trunkline_worker")).claim("w1")
    database.move_time("6 minutes")
    found = {one["topic"]: one["rows"] for one in answer(database, "troubleshoot", "executor")}
    assert found.keys() == {"stuck", "nothing", "many"}
    (row,) = found["nothing"]
    assert row["type"] == "run_tsa"
    # The clock was moved by six minutes; the test itself takes its time.
    assert 6.0 <= row["age_minutes"] < 7.0
    assert "run_tsa" in trunkline(database, "troubleshoot", "executor", "nothing").stdout


def test_a_failing_validation_has_an_exit_code(database: Database) -> None:
    """RC-43: for whoever deploys by a script."""
    trunkline(database, "install", "executor")
    database.connect("trunkline_operator").execute(
        "select executor.set_job_type('run_tsa', '50 minutes')"
    )
    done = trunkline(database, "validate", "executor", code=1)
    assert "FAILED  RC-43" in done.stdout
    assert "found    running, attempts 1" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("validate", "executor"), "profile_not_installed"),
        (("troubleshoot", "executor"), "profile_not_installed"),
        (("install", "other"), "unknown_profile"),
        (("install", "executor", "--phase", "9"), "unknown_phase"),
        (("install", "executor", "--schema", "A-B"), "profile_schema_name"),
        (("install", "executor", "--schema", "public"), "foreign_schema"),
    ],
)
def test_refusals_say_what_to_do(database: Database, arguments: tuple[str, ...], code: str) -> None:
    done = trunkline(database, *arguments, code=1)
    assert f"Code: {code}" in done.stderr
    assert "Hint: " in done.stderr


def test_a_single_wake_up_fails_when_the_database_does(database: Database) -> None:
    """RC-24: a cron entry notices by the exit code that nobody was woken."""
    trunkline(database, "install", "executor")
    once = ("wake", "executor", "--once")
    with FaultProxy.before(database.dsn) as proxy:
        proxy.refuse()
        away = trunkline(database, *once, "--dsn", proxy.dsn(database.dsn), code=1)
    assert "Code: database_unreachable" in away.stderr
    assert "Hint: " in away.stderr
    database.superuser().execute(
        "create or replace function executor.run_wake_ups() returns text"
        " language plpgsql as $$ begin raise exception 'made to fail'; end $$"
    )
    failed = trunkline(database, *once, code=1)
    assert "made to fail" in failed.stderr
    assert "Code: database_problem" in failed.stderr
    assert (away.stdout, failed.stdout) == ("", "")


def test_lasting_wake_ups_outlive_an_absent_server(database: Database, tmp_path: Path) -> None:
    """RC-24: they go on when the server is back, and nobody has to start them again."""
    trunkline(database, "install", "executor")
    said = tmp_path / "said"
    with FaultProxy.before(database.dsn) as proxy, said.open("w", encoding="utf-8") as output:
        proxy.refuse()
        process = subprocess.Popen(
            [TRUNKLINE, "profile", "wake", "executor", "--dsn", proxy.dsn(database.dsn)],
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            stdout=output,
            stderr=output,
        )
        try:
            _until_said(said, "; trying again", process)
            assert "process_orchestrator_jobs" not in said.read_text()
            proxy.open()
            _until_said(said, "process_orchestrator_jobs", process)
        finally:
            process.kill()
            process.wait()


def _until_said(said: Path, word: str, process: subprocess.Popen[bytes]) -> None:
    until(lambda: word in said.read_text() or process.poll() is not None, word)
    assert process.poll() is None, said.read_text()


@pytest.mark.slow
def test_the_demonstration_balances(database: Database) -> None:
    """RC-20, RC-S06, RC-S10: a worker is killed, every document gets its proof, once."""
    account = answer(database, "demo", "executor", "--documents", "3")
    assert account["balanced"] is True
    assert (account["documents"], account["proofs"], account["lost"]) == (3, 3, 0)
    assert (account["workers_killed"], account["duplicates"], account["dead"]) == (1, 0, 0)
    assert account["reclaimed"] >= 1
    assert account["effects"] == 9
