"""``trunkline breakers``."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.driving import PROGRAM, Cli
from tests.cli.terminal import Terminal
from tests.support.calls import Calls
from tests.support.databases import Database
from trunkline.errors import InvalidArgument, UnknownLimit


def fail(calls: Calls, count: int, **fields: Any) -> None:
    """Enqueue jobs and let them fail; they come back much later."""
    calls.fill(count, task="call", **fields)
    attempts = calls.claim("w", count).attempts
    assert len(attempts) == count
    calls.batch("fail", "w", attempts, delays=["1 hour"] * count)


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()[1:]]


def test_a_breaker_is_set_changed_and_removed(cli: Cli) -> None:
    assert "breakers set NAME" in cli.run("breakers", "list").stderr
    text = cli.text("breakers", "set", "api")
    assert text == "Breaker of api set. It counts attempts that fail from now on.\n"
    [found] = cli.json("breakers", "list")
    assert (found["name"], found["state"], found["failures"]) == ("api", "closed", 0)
    parts = {name: value for name, value in found.items() if name.startswith("breaker_")}
    assert parts == {
        "breaker_failures": 10,
        "breaker_share": 0.2,
        "breaker_window": 600.0,
        "breaker_probe_after": 60.0,
    }
    cli.run("breakers", "set", "api", "--failures", 3, "--share", 0.5, "--window", "5m")
    changed = cli.json("breakers", "set", "api", "--probe-after", "30s")
    assert changed == {"limit": "api", "created": False, "breaker_probe_after": "30.0 seconds"}
    [found] = cli.json("breakers", "list")
    parts = {name: value for name, value in found.items() if name.startswith("breaker_")}
    assert parts == {
        "breaker_failures": 3,
        "breaker_share": 0.5,
        "breaker_window": 300.0,
        "breaker_probe_after": 30.0,
    }
    text = cli.text("breakers", "set", "api", "--failures", "none")
    assert text == "Breaker of api removed.\n"
    assert cli.json("breakers", "list") == []


def test_parts_of_a_breaker_with_keys_are_kept_before_its_first_job(cli: Cli, calls: Calls) -> None:
    """Nothing shows it yet, and the number of failures is not set back."""
    cli.run("breakers", "set", "model/{model}", "--failures", 2)
    cli.run("breakers", "set", "model/{model}", "--share", 0.1)
    calls.register("call", limits=["model/{model}"])
    fail(calls, 2, payload={"model": "a"})
    [found] = cli.json("breakers", "list")
    assert (found["name"], found["limit"], found["state"]) == ("model/a", "model/{model}", "open")


def test_an_open_one_is_shown_first_with_why_and_until_when(cli: Cli, calls: Calls) -> None:
    cli.run("breakers", "set", "api", "--failures", 3)
    cli.run("breakers", "set", "aaa")
    calls.register("call", limits=["api"])
    fail(calls, 3)
    calls.fill(2, task="call")
    text = cli.text("breakers", "list")
    first, second = rows(text)
    assert first[:4] == ["api", "open", "3/3", "100%/20%"]
    assert " in 60s " in text or " in 59s " in text or " in 1m " in text
    assert "3 of 3 attempts failed within 00:10:00" in text
    assert second[:3] == ["aaa", "closed", "0/10"]


def test_explain_names_what_holds_a_job(cli: Cli, calls: Calls, database: Database) -> None:
    cli.run("breakers", "set", "api", "--failures", 3)
    calls.register("call", limits=["api"])
    fail(calls, 3)
    _, job = calls.fill(2, task="call")
    told = cli.text("jobs", "explain", job)
    assert "The breaker api is open (3 of 3 attempts failed within 00:10:00)." in told
    assert "The next job is tried at 2" in told
    assert "trunkline breakers reset 'api'" in told
    database.move_time("1 minute")
    assert "the next job" in cli.text("breakers", "list")
    [probe] = calls.claim("w", 9).jobs
    told = cli.text("jobs", "explain", job)
    assert "The breaker api is half-open (3 of 3 attempts failed within 00:10:00)." in told
    assert "One job is being tried; the others start when it succeeds." in told
    assert f"job {probe}" in cli.text("breakers", "list")


def test_reset(cli: Cli, calls: Calls) -> None:
    cli.run("breakers", "set", "model/{model}", "--failures", 2)
    calls.register("call", limits=["model/{model}"])
    for model in "abc":
        fail(calls, 2, payload={"model": model})
    assert cli.text("breakers", "reset", "model/a") == "Breaker of model/a closed.\n"
    assert cli.text("breakers", "reset", "model/a") == "Breaker of model/a was not open.\n"
    text = cli.text("breakers", "reset", "model/{model}")
    assert text == "2 breakers of model/{model} closed.\n"
    assert cli.json("breakers", "reset", "model/{model}") == {
        "breaker": "model/{model}",
        "closed": 0,
    }
    assert {row["state"] for row in cli.json("breakers", "list")} == {"closed"}


def test_trip(cli: Cli, calls: Calls) -> None:
    cli.run("breakers", "set", "api")
    calls.register("call", limits=["api"])
    calls.fill(1, task="call")
    text = cli.text("breakers", "trip", "api", "--reason", "nonsense", "--for", "15m")
    assert text.startswith(
        "Breaker of api opened. Running jobs continue; the next job is tried at 2"
    )
    assert text.endswith(("(in 15m).\n", "(in 14m59s).\n"))
    assert calls.claim("w").rows == []
    [found] = cli.json("breakers", "list")
    assert (found["state"], found["reason"], found["waiting"]) == ("open", "nonsense", 1)
    assert cli.json("breakers", "trip", "api")["state"] == "open"


def test_the_doctor_reports_open_breakers(cli: Cli) -> None:
    """RF-85: an alert."""
    cli.run("breakers", "set", "api")
    assert "all closed" in cli.run("doctor").stdout
    cli.run("breakers", "trip", "api")
    text = cli.run("doctor").stdout
    assert "not closed: api" in text
    assert "trunkline breakers list" in text


def test_the_doctor_names_three_open_ones_and_counts_the_rest(cli: Cli) -> None:
    for name in ("a", "b", "c", "d", "e"):
        cli.run("breakers", "set", name)
        cli.run("breakers", "trip", name)
    [line] = [line for line in cli.run("doctor").stdout.splitlines() if "not closed" in line]
    assert line == "warn  breakers: not closed: a, b, c and 2 more"


def test_a_live_table_follows_it(cli: Cli, calls: Calls) -> None:
    cli.run("breakers", "set", "api")
    calls.register("call", limits=["api"])
    with Terminal(*PROGRAM, "breakers", "list", "--watch", dsn=cli.dsn) as shown:
        shown.until("BREAKER", "api", "closed", "0/10")
        fail(calls, 10)
        screen = shown.until("open", "10/10", "100%/20%")
        assert screen.count("BREAKER") == 1
        calls.value("select trunkline.reset_breaker('api')")
        shown.until("closed", "0/10")
        shown.interrupt()
        assert shown.end() == 0


@pytest.mark.parametrize("command", ["reset", "trip"])
def test_what_has_no_breaker_is_refused(cli: Cli, command: str) -> None:
    cli.run("breakers", "set", "api")
    cli.run("limits", "set", "plain", "--concurrency", 2)
    with pytest.raises(UnknownLimit) as unknown:
        cli.run("breakers", command, "apy")
    assert unknown.value.detail["known"] == ["api"]
    with pytest.raises(InvalidArgument) as without:
        cli.run("breakers", command, "plain")
    assert "breaker" in without.value.detail["must_be"]


def test_what_is_no_breaker_is_wrong_usage(cli: Cli) -> None:
    for wrong in (
        ["--failures", "0"],
        ["--failures", "many"],
        ["--share", "1.5"],
        ["--window", "long"],
    ):
        assert cli.run("breakers", "set", "api", *wrong).exit_code == 2
    with pytest.raises(InvalidArgument):
        cli.run("breakers", "set", "api", "--window", "10s")
