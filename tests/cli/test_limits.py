"""``trunkline limits``."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.cli.driving import Cli
from tests.cli.test_terminal import terminal
from tests.support.calls import Calls
from tests.support.databases import Database
from trunkline.errors import UnknownLimit


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()[1:]]


def words(text: str) -> str:
    """Join lines that were wrapped."""
    return " ".join(text.split())


def test_a_limit_is_created_changed_and_shown(cli: Cli, calls: Calls) -> None:
    assert "limits set NAME" in cli.run("limits", "list").stderr
    text = cli.text("limits", "set", "api", "--concurrency", "2", "--tokens-per-minute", "900")
    assert text == "Limit api created. It applies from the next claim.\n"
    calls.register("call", limits=["api"], cost={"tokens": 100})
    calls.fill(5, task="call")
    assert len(calls.claim("w", 9).rows) == 2
    assert rows(cli.text("limits", "list")) == [["api", "2/2", "200/900", "3"]]
    text = cli.text("limits", "set", "api", "--concurrency", "none")
    assert text == "Limit api changed. It applies from the next claim.\n"
    [limit] = cli.json("limits", "list")
    assert (limit["concurrency"], limit["in_use"], limit["waiting"]) == (None, 2, 3)
    assert cli.json("limits", "set", "api", "--concurrency", "4") == {
        "limit": "api",
        "created": False,
        "concurrency": 4,
    }
    assert len(calls.claim("w", 9).rows) == 2


def test_pause_and_resume(cli: Cli, calls: Calls) -> None:
    cli.run("limits", "set", "api", "--concurrency", "2")
    calls.register("call", limits=["api"])
    calls.fill(1, task="call")
    assert cli.text("limits", "pause", "api", "--reason", "new key") == (
        "Limit api paused. Running jobs continue; new calls through ctx.http and ctx.grant are"
        " refused.\n"
    )
    assert "paused: new key" in cli.text("limits", "list")
    assert calls.claim("w").rows == []
    [job] = cli.json("jobs", "list")
    told = cli.text("jobs", "explain", job["job_id"])
    assert "The limit api is in maintenance (new key)." in told
    assert "trunkline limits resume 'api'" in told
    assert cli.text("limits", "resume", "api") == "Limit api resumed.\n"
    assert len(calls.claim("w").rows) == 1


def test_explain_names_the_limit_that_a_job_waits_for_and_until_when(
    cli: Cli, calls: Calls
) -> None:
    cli.run("limits", "set", "api", "--requests-per-minute", "1")
    cli.run("limits", "set", "slot", "--concurrency", "1")
    calls.register("call", limits=["api"])
    calls.register("hold", limits=["slot"])
    *_, last = calls.fill(3, task="call")
    _, held = calls.fill(2, task="hold")
    calls.claim("w", 9)
    told = cli.text("jobs", "explain", str(last))
    assert "It waits for the limit api: 1 job ahead of it. There may be room for it from " in told
    assert "(in 2m" in told
    told = cli.text("jobs", "explain", str(held))
    assert (
        "It waits for the limit slot: 0 jobs ahead of it. It starts when a slot becomes free"
        in told
    )


def test_jobs_that_a_limit_sets_aside_are_shown(cli: Cli, calls: Calls, database: Database) -> None:
    cli.run("limits", "set", "api", "--tokens-per-minute", "1000")
    calls.register("call", limits=["api"], cost={"tokens": 1000})
    first, _ = calls.fill(2, task="call")
    assert "set aside" not in cli.text("limits", "show", "api")
    cli.run("limits", "set", "api", "--tokens-per-minute", "900")
    assert "2 set aside" in cli.text("limits", "list")
    shown = cli.text("limits", "show", "api")
    assert "2 jobs, which cost more than the limit can ever allow" in words(shown)
    found = cli.json("limits", "show", "api")
    assert (found["waiting"], found["set_aside"]) == (2, 2)
    assert [key["set_aside"] for key in found["keys"]] == [2]
    told = cli.text("jobs", "explain", str(first))
    assert "it costs 1,000 tokens, and the limit api gives at most 900 at once" in told
    assert "trunkline limits set 'api'" in told
    assert [check["message"] for check in checks(cli)] == ["2 jobs; see: trunkline limits list"]
    database.move_time("25 hours")
    [check] = checks(cli)
    assert (check["level"], "2 jobs set aside for too long" in check["message"]) == ("warn", True)
    assert check["hint"]
    cli.run("limits", "set", "api", "--tokens-per-minute", "none")
    assert [check["message"] for check in checks(cli)] == ["none"]
    assert len(calls.claim("w", 9).rows) == 2


def test_the_limit_to_raise_is_the_one_with_keys_or_the_quota(cli: Cli, calls: Calls) -> None:
    """A limit made for one key would not have the other parts of the one with keys."""
    cli.run("limits", "set", "model/{model}", "--tokens-per-minute", "1000", "--concurrency", "2")
    calls.register("call", limits=["model/{model}"], cost={"tokens": 1000})
    (keyed,) = calls.fill(1, task="call", payload={"model": "a"})
    cli.run("limits", "set", "model/{model}", "--tokens-per-minute", "900")
    told = cli.text("jobs", "explain", str(keyed))
    assert "the limit model/a gives at most 900 at once" in told
    assert "trunkline limits set 'model/{model}'" in told
    assert "trunkline limits set 'model/{model}'" in words(
        cli.text("limits", "show", "model/{model}")
    )
    cli.run("quotas", "set", "budget", "--amount", "5000", "--unit", "tokens")
    calls.register("spend", limits=["budget"], cost={"tokens": 1000})
    (usage,) = calls.fill(1, task="spend")
    cli.run("quotas", "set", "budget", "--amount", "100")
    assert "trunkline quotas set 'budget'" in cli.text("jobs", "explain", str(usage))
    assert "trunkline quotas set 'budget'" in words(cli.text("limits", "show", "budget"))


def checks(cli: Cli) -> list[dict[str, Any]]:
    """What the doctor says about jobs that are set aside."""
    found = json.loads(cli.run("doctor", "--json").stdout)["checks"]
    return [check for check in found if check["check"] == "set aside"]


def test_keys_are_shown_with_what_waits_for_each(cli: Cli, calls: Calls) -> None:
    cli.run("limits", "set", "model/{model}", "--concurrency", "1")
    calls.register("call", limits=["model/{model}"])
    calls.fill(3, task="call", payload={"model": "a"})
    calls.fill(1, task="call", payload={"model": "b"})
    calls.claim("w", 9)
    shown = cli.text("limits", "show", "model/{model}")
    assert [row for row in rows(shown) if row[:1] == ["model/a"]] == [["model/a", "1/1", "2"]]
    keys = cli.json("limits", "show", "model/{model}")["keys"]
    assert [(key["name"], key["waiting"]) for key in keys] == [("model/a", 2), ("model/b", 0)]


@pytest.mark.parametrize("command", [["show"], ["pause"], ["resume"]])
def test_an_unknown_limit_is_refused_with_the_known_ones(cli: Cli, command: list[str]) -> None:
    cli.run("limits", "set", "api", "--concurrency", "2")
    with pytest.raises(UnknownLimit) as caught:
        cli.run("limits", *command, "apy")
    assert caught.value.detail["known"] == ["api"]


def test_what_is_no_limit_is_wrong_usage(cli: Cli) -> None:
    for wrong in ([], ["--concurrency", "-1"], ["--concurrency", "many"], ["--tokens", "1"]):
        assert cli.run("limits", "set", "api", *wrong).exit_code == 2


def test_every_part_is_set_and_shown(cli: Cli, calls: Calls) -> None:
    """CP-23 to CP-25, TA-19: pressure, depth and shares alongside rates and slots."""
    made = cli.json(
        "limits", "set", "fair:mail/{tenant}", "--concurrency", "5", "--requests-per-hour", "1000",
        "--backpressure-threshold", "0.8", "--backpressure-delay", "1m30s", "--depth-limit", "7",
        "--depth-delay", "--weight", "3", "--share-cap", "2",
    )  # fmt: skip
    assert made == {
        "limit": "fair:mail/{tenant}", "created": True, "concurrency": 5,
        "requests_per_hour": 1000, "backpressure_threshold": 0.8,
        "backpressure_delay": "90.0 seconds", "depth_limit": 7, "depth_refuses": False,
        "weight": 3, "share_cap": 2,
    }  # fmt: skip
    calls.value(
        "select trunkline.set_limit('fair:mail/{tenant}', '{\"breaker_failures\": 4}'::jsonb)"
    )
    cli.text("quotas", "set", "fair:mail/{tenant}", "--amount", "500", "--unit", "letters")
    told = cli.text("limits", "show", "fair:mail/{tenant}").splitlines()
    for line in (
        "status       active",
        "running      0 of 5 at once",
        "requests     0 of 1,000 an hour",
        "quota        0 of 500 letters in 30d",
        "waiting      0 jobs",
        "breaker      closed; opens at 4 failures and 20% within 10m, tries again after 1m",
        "pressure     new jobs are deferred by 1m30s above 80% of the minute",
        "depth        up to 7 jobs wait, more are deferred by 1m30s",
        "share group  fair:mail, weight 3, at most 2 at once while others wait",
    ):
        assert line in told
    found = cli.json("limits", "show", "fair:mail/{tenant}")
    assert (found["backpressure_delay"], found["weight"], found["share_group"]) == (
        90,
        3,
        "fair:mail",
    )
    cli.text("limits", "set", "fair:mail/{tenant}", "--backpressure-threshold", "none",
             "--depth-limit", "none", "--share-cap", "none")  # fmt: skip
    told_again = cli.text("limits", "show", "fair:mail/{tenant}")
    assert not re.search(r"^(pressure|depth) ", told_again, re.MULTILINE)
    assert "at most" not in told_again


def test_a_pause_of_the_provider_is_shown_and_lifted(cli: Cli, calls: Calls) -> None:
    """A pause that one key was asked for is shown, and ends when an operator says so."""
    cli.text("limits", "set", "api/{model}/{tenant}", "--requests-per-minute", "2")
    calls.register("call", limits=["api/{model}/{tenant}"])
    for model in ("a/b", "c"):
        calls.fill(1, task="call", payload={"model": model}, tenant="acme")
        keys = {"model": model, "tenant": "acme"}
        calls.value(
            "select trunkline.observe_limit('api/{model}/{tenant}', %s, %s)",
            Jsonb({"retry_after": 600, "reason": "429 from the provider"}),
            Jsonb(keys),
        )
        calls.value("select trunkline.acquire('api/{model}/{tenant}', '{}', %s)", Jsonb(keys))
    assert calls.claim("w", 9).rows == []
    assert re.search(r"paused for (9m5\ds|10m)\n", cli.text("limits", "list"))
    told = cli.text("limits", "show", "api/{model}/{tenant}")
    assert re.search(r"^paused +2 keys, until .+: 429 from the provider$", told, re.MULTILINE)
    assert re.search(r"^refused +2 calls, last ", told, re.MULTILINE)
    keys_shown = cli.json("limits", "show", "api/{model}/{tenant}")["keys"]
    assert {key["name"] for key in keys_shown} == {"api/a%2Fb/acme", "api/c/acme"}
    assert {key["pause_reason"] for key in keys_shown} == {"429 from the provider"}
    assert (
        cli.text("limits", "resume", "api/{model}/{tenant}")
        == "Limit api/{model}/{tenant} resumed. 2 pauses of its provider lifted.\n"
    )
    assert len(calls.claim("w", 9).rows) == 2
    again = cli.json("limits", "resume", "api/{model}/{tenant}")
    assert (again["status"], again["lifted"]) == ("active", [])


def test_live_gauges_of_limits(cli: Cli, calls: Calls) -> None:
    cli.text("limits", "set", "api", "--requests-per-minute", "4", "--concurrency", "10")
    cli.text("limits", "set", "document/{document}", "--concurrency", "1")
    calls.register("call", limits=["api"])
    calls.register("page", limits=["document/{document}"])
    for columns in (80, 120):
        with terminal(cli, "limits", "list", "--watch", columns=columns) as shown:
            width = 10 if columns == 80 else 20
            shown.until("api", "document/{document}")
            if columns == 80:
                calls.fill(4, task="call")
                calls.claim("w", 2)
                # Of the part of which most is used.
                shown.until("█" * 5 + "░" * 5, "2/4", "2/10")
                calls.claim("w", 9)
                for document in ("a", "b", "c"):
                    calls.fill(2, task="page", payload={"document": document})
                calls.claim("w", 9)
            screen = shown.until("4/4", "3/3x1")
            bars = [line for line in screen.splitlines() if "█" * width in line]
            assert [line.split()[0] for line in bars] == ["api", "document/{document}"]
            assert "░" not in "".join(bars)
            shown.interrupt()
            assert shown.end() == 0


def test_wrong_parts_are_wrong_usage(cli: Cli) -> None:
    for wrong in (
        ["--backpressure-threshold", "2"],
        ["--backpressure-threshold", "much"],
        ["--backpressure-delay", "soon"],
        ["--depth-limit", "-1"],
        ["--weight", "0.5"],
    ):
        assert cli.run("limits", "set", "api", *wrong).exit_code == 2
    assert cli.json("limits", "list") == []
