"""``trunkline quotas``: amounts, forecast and usage."""

from __future__ import annotations

import re
from datetime import UTC, timedelta
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.json import Jsonb

from tests.cli.driving import Cli
from tests.cli.test_limits import rows
from tests.cli.test_terminal import terminal
from tests.support.calls import Attempt, Calls
from tests.support.databases import Database
from trunkline.errors import Refusal, UnknownLimit

GIB = 1024**3


def settle(calls: Calls, attempt: Attempt, **actual: float) -> None:
    answer = calls.value(
        "select trunkline.settle_job(%s, %s, %s)", attempt.job, attempt.number, Jsonb(actual)
    )
    assert answer == "settled"


def spend(calls: Calls, task: str, tenant: str | None = None, **actual: float) -> None:
    """One job that takes what it says, and ends."""
    calls.fill(1, task=task, tenant=tenant)
    [attempt] = calls.claim("w").attempts
    settle(calls, attempt, **actual)
    calls.batch("complete", "w", [attempt])


def test_a_quota_is_set_used_and_shown(cli: Cli, calls: Calls) -> None:
    """RF-53, RF-55: 19 of 20 GiB are given out; what runs is reserved until it is settled."""
    assert "quotas set NAME" in cli.run("quotas", "list").stderr
    text = cli.text("quotas", "set", "maps", "--amount", "20GiB", "--window", "30d")
    assert text == "Quota of maps set. It applies from the next claim.\n"
    calls.register("fetch", limits=["maps"], cost={"units": 5 * GIB})
    calls.fill(5, task="fetch")
    attempts = calls.claim("w", 9).attempts
    assert len(attempts) == 3
    assert re.split(r"  +", cli.text("quotas", "list").splitlines()[1].strip()) == [
        *("maps", "75%", "15 GiB/20 GiB", "15 GiB", "30d", "15 GiB/h", "in 16m"),
        "low priorities wait",
    ]
    settle(calls, attempts[0], units=GIB)
    told = cli.text("quotas", "show", "maps")
    for line in (
        "amount      20 GiB in any 30d, of which jobs may take 19 GiB",
        "spent       11 GiB (55%)",
        "reserved    10 GiB of that, by running jobs",
        "left        8 GiB",
        "low         from 15 GiB on, priorities below 0 wait",
        "when spent  new jobs are refused",
        "pace        11 GiB an hour",
    ):
        assert line in told.splitlines()
    [found] = cli.json("quotas", "show", "maps")
    assert (found["unit"], found["quota"], found["spent"]) == ("bytes", 20 * GIB, 11 * GIB)
    assert (found["window"], found["share"]) == (30 * 86400, 0.55)


def test_a_budget_by_tenant_is_changed_for_one_and_spent_by_another(
    cli: Cli, calls: Calls, database: Database
) -> None:
    """RF-54, RF-58: low priorities stop first; a budget that is spent says until when."""
    database.move_to_noon()
    cli.text("quotas", "set", "budget/{tenant}", "--amount", "1k", "--unit", "tokens",
             "--period", "day", "--low-share", "0.6", "--low-below", "10", "--wait")  # fmt: skip
    cli.text(
        "quotas", "set", "budget/acme", "--amount", "5M", "--unit", "tokens", "--period", "day"
    )
    calls.register("write", limits=["budget/{tenant}"], cost={"tokens": 600})
    for tenant in ("acme", "zoo"):
        calls.fill(1, task="write", tenant=tenant)
    acme, zoo = sorted(
        calls.claim("w", 9).attempts,
        key=lambda attempt: calls.value("select tenant from trunkline.job(%s)", attempt.job),
    )
    settle(calls, acme, tokens=700)
    found = {row["name"]: row for row in cli.json("quotas", "list")}
    assert set(found) == {"budget/acme", "budget/zoo"}
    assert (found["budget/acme"]["spent"], found["budget/acme"]["quota"]) == (700, 5_000_000)
    assert (found["budget/zoo"]["paused_low"], found["budget/zoo"]["low_below"]) == (True, 10)
    settle(calls, zoo, tokens=1000)
    line = next(row for row in rows(cli.text("quotas", "list")) if row[0] == "budget/zoo")
    assert line[:3] == ["budget/zoo", "100%", "1,000/1,000"]
    assert "waits, more in" in " ".join(line)
    told = cli.text("quotas", "show", "budget/zoo")
    tomorrow = (calls.clock().astimezone(UTC) + timedelta(days=1)).strftime("%Y-%m-%d")
    assert f"resets      {tomorrow} 00:00:00" in told
    assert f"forecast    spent; more {tomorrow}" in told
    assert "limit       budget/{tenant}" in told
    assert "when spent  new jobs wait" in told


def test_parts_are_changed_alone_and_the_quota_taken_away(cli: Cli) -> None:
    assert cli.json("quotas", "set", "maps", "--amount", "1_000", "--unit", "pages") == {
        "limit": "maps", "created": True, "quota": 1000, "quota_unit": "pages",
    }  # fmt: skip
    changed = cli.json("quotas", "set", "maps", "--buffer", "0.5", "--low-below", "-5", "--wait")
    assert changed == {
        "limit": "maps", "created": False, "quota_buffer": 0.5, "quota_low_below": -5,
        "quota_refuses": False,
    }  # fmt: skip
    [found] = cli.json("quotas", "list")
    assert (found["allowed"], found["low_allowed"], found["refuses"]) == (500, 500, False)
    cli.text("quotas", "set", "maps", "--period", "month")
    [found] = cli.json("quotas", "list")
    assert (found["window"], found["period"], found["unit"]) == (None, "month", "pages")
    assert cli.text("quotas", "set", "maps", "--amount", "none") == "Quota of maps removed.\n"
    assert cli.json("quotas", "list") == []


@pytest.mark.parametrize(
    ("amount", "bytes_"),
    [("0", 0), ("5M", 5_000_000), ("1.5k", 1500), ("2,000", 2000), ("3 kB", 3000), ("1MiB", 2**20)],
)
def test_amounts_as_people_write_them(cli: Cli, amount: str, bytes_: int) -> None:
    assert cli.json("quotas", "set", "maps", "--amount", amount)["quota"] == bytes_


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([], "Pass an amount"),
        (["--amount", "much"], "is not an amount"),
        (["--amount", "-1"], "is not an amount"),
        (["--amount", "1.5"], "is not an amount"),
        (["--amount", "2000T"], "is not an amount"),
        (["--amount", "1GiB", "--unit", "tokens"], "The amount is in bytes, but --unit is tokens"),
        (["--amount", "1", "--window", "1d", "--period", "day"], "not both"),
        (["--amount", "1", "--period", "week"], "'week' is not one of"),
        (["--amount", "1", "--buffer", "0"], "0 is not in the range"),
        (["--amount", "1", "--low-below", "51"], "51 is not in the range"),
        (["--unit", "pages"], "has no quota yet"),
    ],
)
def test_what_is_no_quota_is_wrong_usage(cli: Cli, given: list[str], why: str) -> None:
    result = cli.run("quotas", "set", "maps", *given)
    assert result.exit_code == 2
    assert why in result.stderr
    assert cli.json("limits", "list") == []


def test_a_window_that_is_too_long_is_refused_by_the_engine(cli: Cli) -> None:
    with pytest.raises(Refusal) as caught:
        cli.run("quotas", "set", "maps", "--amount", "1", "--window", "400d")
    assert "3600 to 31622400 seconds" in caught.value.detail["must_be"]


def test_an_unknown_quota_is_refused_with_the_known_ones(cli: Cli) -> None:
    cli.text("quotas", "set", "maps", "--amount", "1")
    cli.text("limits", "set", "api", "--concurrency", "1")
    with pytest.raises(UnknownLimit) as caught:
        cli.run("quotas", "show", "api")
    server = caught.value.detail.pop("server")
    assert server.endswith(f"/{conninfo_to_dict(cli.dsn)['dbname']}")
    assert caught.value.detail == {"limit": "api", "known": ["maps"]}
    assert caught.value.hint == "List the quotas with: trunkline quotas list"


def test_the_known_quotas_are_sorted(cli: Cli) -> None:
    for name in ("fax", "maps", "echo", "dial", "chat", "bulk", "zoom"):
        cli.text("quotas", "set", name, "--amount", "1")
    with pytest.raises(UnknownLimit) as caught:
        cli.run("quotas", "show", "api")
    known = ["bulk", "chat", "dial", "echo", "fax", "maps", "zoom"]
    assert caught.value.detail["known"] == known


def test_usage_by_day_task_tenant_and_limit(cli: Cli, calls: Calls, database: Database) -> None:
    """What was settled, told for each limit and summed over none; money once."""
    database.move_to_noon()
    cli.text("limits", "set", "openai", "--tokens-per-minute", "100000")
    cli.text("quotas", "set", "budget/{tenant}", "--amount", "1M", "--unit", "tokens")
    calls.register("write", limits=["openai", "budget/{tenant}"], cost={"tokens": 10})
    calls.register("read", limits=["openai"], cost={"tokens": 10})
    assert "No usage in that time" in cli.run("quotas", "usage").stderr
    spend(calls, "write", "acme", tokens=100, cost=0.5)
    spend(calls, "write", "zoo", tokens=200, cost=0.25)
    spend(calls, "read", tokens=3)
    yesterday = calls.clock().astimezone(UTC).date()
    database.move_time("1 day")
    spend(calls, "write", "acme", tokens=40)
    today = yesterday + timedelta(days=1)

    def books(*arguments: str, of: str = "openai", by: str) -> dict[Any, Any]:
        found = cli.json("quotas", "usage", "--by", by, *arguments)
        return {row[by]: (row["calls"], row["tokens"]) for row in found if row["limit"] == of}

    assert books(by="day") == {yesterday.isoformat(): (3, 303), today.isoformat(): (1, 40)}
    assert books(by="task") == {"read": (1, 3), "write": (3, 340)}
    assert books(by="tenant") == {"acme": (2, 140), "zoo": (1, 200), None: (1, 3)}
    assert books(by="tenant", of="budget/{tenant}") == {"acme": (2, 140), "zoo": (1, 200)}
    assert books(by="limit") == {"openai": (4, 343)}
    assert books("--since", today.isoformat(), by="task") == {"write": (1, 40)}
    assert books("--since", "1h", by="limit") == {"openai": (1, 40)}
    shown = cli.text("quotas", "usage", "--by", "tenant")
    assert rows(shown)[1] == ["acme", "openai", "2", "2", "140", "0.5000"]
    assert shown.endswith("\nTotal cost: 0.7500\n")
    assert cli.run("quotas", "usage", "--since", "soon").exit_code == 2


def test_live_gauges_follow_in_the_colour_of_their_fill(cli: Cli, calls: Calls) -> None:
    cli.text("quotas", "set", "maps", "--amount", "100", "--unit", "pages", "--buffer", "1")
    calls.register("fetch", limits=["maps"], cost={"units": 60})
    with terminal(cli, "quotas", "list", "--watch", columns=80) as shown:
        shown.until("░" * 10, " 0%")
        assert "█" not in shown.text
        calls.fill(1, task="fetch")
        [attempt] = calls.claim("w").attempts
        screen = shown.until(" 60%", "60/100 pages")
        assert "█" * 6 + "░" * 4 in screen
        line = next(n for n, text in enumerate(screen.splitlines()) if "█" in text)
        place = screen.splitlines()[line].index("█")
        assert shown.screen.buffer[line][place].fg == "green"
        settle(calls, attempt, units=100)
        screen = shown.until("100%", "refused, more in")
        assert "█" * 10 in screen
        assert shown.screen.buffer[line][place].fg == "red"
        shown.interrupt()
        assert shown.end() == 0


def test_a_narrow_terminal_still_shows_keys_that_differ(cli: Cli, calls: Calls) -> None:
    cli.text("quotas", "set", "budget/{tenant}", "--amount", "5M", "--unit", "tokens",
             "--period", "month")  # fmt: skip
    calls.register("write", limits=["budget/{tenant}"], cost={"tokens": 100_000})
    for tenant in ("acme", "globex"):
        calls.fill(1, task="write", tenant=tenant)
    calls.claim("w", 9)
    for columns in (50, 80, 120):
        with terminal(cli, "quotas", "list", columns=columns) as shown:
            assert shown.end() == 0
            lines = shown.text.splitlines()
        assert len(lines) == 3
        assert [line.split()[0] for line in lines[1:]] == ["budget/acme", "budget/globex"]
        assert all("2%" in line for line in lines[1:])
        assert "…" not in lines[0]


def test_of_many_keys_the_fullest_are_shown(cli: Cli, calls: Calls) -> None:
    cli.text("quotas", "set", "budget/{tenant}", "--amount", "100", "--unit", "tokens")
    calls.register("write", limits=["budget/{tenant}"], cost={"tokens": 1})
    for number in range(60):
        calls.fill(1 if number else 3, task="write", tenant=f"t{number}")
    assert len(calls.claim("w", 100).rows) == 62
    shown = cli.text("quotas", "list").splitlines()
    assert shown[1].split()[:3] == ["budget/t0", "3%", "3/100"]
    assert len(shown) == 1 + 50 + 1
    assert shown[-1] == "10 more keys; --json prints all of them"
    assert len(cli.json("quotas", "list")) == 60
