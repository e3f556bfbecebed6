"""``trunkline limits``."""

from __future__ import annotations

import pytest

from tests.cli.driving import Cli
from tests.support.calls import Calls
from trunkline.errors import UnknownLimit


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()[1:]]


def test_a_limit_is_made_changed_and_shown(cli: Cli, calls: Calls) -> None:
    assert "limits set NAME" in cli.run("limits", "list").stderr
    made = cli.text("limits", "set", "api", "--concurrency", "2", "--tokens-per-minute", "900")
    assert made == "api is made: it counts from the next claim on\n"
    calls.register("call", limits=["api"], cost={"tokens": 100})
    calls.fill(5, task="call")
    assert len(calls.claim("w", 9).rows) == 2
    assert rows(cli.text("limits", "list")) == [["api", "2/2", "200/900", "3"]]
    assert cli.text("limits", "set", "api", "--concurrency", "none").startswith("api is changed")
    [found] = cli.json("limits", "list")
    assert (found["concurrency"], found["in_use"], found["waiting"]) == (None, 2, 3)
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
    assert cli.text("limits", "pause", "api", "--reason", "new key") == "api is paused\n"
    assert "maintenance: new key" in cli.text("limits", "list")
    assert calls.claim("w").rows == []
    [job] = cli.json("jobs", "list")
    told = cli.text("jobs", "explain", job["job_id"])
    assert "The limit api is in maintenance (new key)." in told
    assert "trunkline limits resume 'api'" in told
    assert cli.json("limits", "resume", "api")["status"] == "active"
    assert len(calls.claim("w").rows) == 1


def test_a_job_that_waits_is_told_for_what_and_until_when(cli: Cli, calls: Calls) -> None:
    cli.run("limits", "set", "api", "--requests-per-minute", "1")
    cli.run("limits", "set", "slot", "--concurrency", "1")
    calls.register("call", limits=["api"])
    calls.register("hold", limits=["slot"])
    *_, last = calls.fill(3, task="call")
    _, held = calls.fill(2, task="hold")
    calls.claim("w", 9)
    told = cli.text("jobs", "explain", str(last))
    assert "It waits for the limit api: 1 ahead of it; there may be room for it from " in told
    assert "(in 2m" in told
    told = cli.text("jobs", "explain", str(held))
    assert "It waits for the limit slot: 0 ahead of it; it starts when a slot comes free" in told


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
def test_an_unknown_limit_is_told_with_the_known_ones(cli: Cli, command: list[str]) -> None:
    cli.run("limits", "set", "api", "--concurrency", "2")
    with pytest.raises(UnknownLimit) as caught:
        cli.run("limits", *command, "apy")
    assert caught.value.detail["known"] == ["api"]


def test_what_is_no_limit_is_wrong_usage(cli: Cli) -> None:
    for wrong in ([], ["--concurrency", "-1"], ["--concurrency", "many"], ["--tokens", "1"]):
        assert cli.run("limits", "set", "api", *wrong).exit_code == 2
