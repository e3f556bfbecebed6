"""``trunkline log``."""

from __future__ import annotations

import pytest

from tests.cli.driving import Cli
from tests.cli.test_terminal import terminal
from tests.support.calls import Calls
from tests.support.databases import Database


def rows(text: str) -> list[list[str]]:
    """Return the cells of a table that is not cut."""
    return [[cell for cell in line.split("  ") if cell] for line in text.splitlines()[1:]]


@pytest.fixture(autouse=True)
def actor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUNKLINE_ACTOR", "ann")


def test_a_change_is_shown_with_actor_object_and_reason(cli: Cli) -> None:
    assert "trunkline queues pause QUEUE" in cli.run("log").stderr
    cli.text("queues", "limit", "mail", "5")
    cli.text("queues", "limit", "mail", "9", "--reason", "larger disk")
    second, first = rows(cli.text("log"))
    assert [cell.strip() for cell in second[1:6]] == [
        "ann", "limit_queue", "mail", "max_depth 5 → 9", "larger disk",
    ]  # fmt: skip
    assert first[4].strip() == "max_depth 5"
    [newest, _] = cli.json("log")
    assert (newest["actor"], newest["kind"], newest["object"]) == ("ann", "queue", "mail")
    assert (newest["before"]["max_depth"], newest["after"]["max_depth"]) == (5, 9)


def test_every_change_of_these_groups_takes_a_reason(cli: Cli, calls: Calls) -> None:
    calls.value("select trunkline.register_worker('w1')")
    changes = [
        ("limits", "set", "api", "--concurrency", "2"),
        ("limits", "pause", "api"),
        ("limits", "resume", "api"),
        ("quotas", "set", "api", "--amount", "5"),
        ("breakers", "set", "api"),
        ("breakers", "trip", "api"),
        ("breakers", "reset", "api"),
        ("schedules", "set", "nightly", "@daily", "send"),
        ("schedules", "pause", "nightly"),
        ("schedules", "resume", "nightly"),
        ("schedules", "remove", "nightly", "--yes"),
        ("duties", "disable", "promote"),
        ("duties", "enable", "promote"),
        ("settings", "set", "lease", "10m"),
        ("settings", "reset", "lease"),
        ("workers", "drain", "w1"),
    ]
    for number, change in enumerate(changes):
        cli.text(*change, "--reason", f"ticket {number}")
    reasons = [line["reason"] for line in reversed(cli.json("log"))]
    assert reasons == [f"ticket {number}" for number in range(len(changes))]


def test_lines_are_filtered_by_actor_action_kind_object_and_time(
    cli: Cli, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.text("queues", "limit", "mail", "5")
    database.move_time("3 hours")
    cli.text("queues", "limit", "print", "5")
    monkeypatch.setenv("TRUNKLINE_ACTOR", "bob")
    cli.text("queues", "pause", "mail")

    def shown(*arguments: str) -> list[tuple[str, str]]:
        return [(line["action"], line["object"]) for line in cli.json("log", *arguments)]

    paused, limited, first = (
        ("pause_queue", "mail"),
        ("limit_queue", "print"),
        ("limit_queue", "mail"),
    )
    assert shown() == [paused, limited, first]
    assert shown("--actor", "ann") == [limited, first]
    assert shown("--action", "pause_queue") == [paused]
    assert shown("--kind", "queue", "--object", "mail") == [paused, first]
    assert shown("--since", "2h") == [paused, limited]
    assert shown("--until", "2h") == [first]
    assert shown("--limit", "1") == [paused]
    nothing = cli.run("log", "--actor", "eve")
    assert (nothing.stdout, nothing.stderr) == (
        "",
        "No change matches. Show all of them with: trunkline log\n",
    )
    assert cli.run("log", "--since", "soon").exit_code == 2


def test_a_payload_is_shown_as_the_start_of_its_hash(cli: Cli) -> None:
    for card in ("4111", "4222"):
        cli.text("schedules", "set", "s", "@daily", "send", "--payload", f'{{"card": "{card}"}}')
    [changed, created] = cli.json("log")
    old, new = (line["after"]["payload_sha256"] for line in (created, changed))
    assert len(old) == len(new) == 64
    text = cli.text("log")
    assert f"payload {old[:8]} → {new[:8]}" in text
    assert old[:9] not in text
    assert "4111" not in text


def test_a_bulk_change_is_shown_with_its_filter_and_counts(cli: Cli, calls: Calls) -> None:
    calls.fill(3, task="send")
    calls.value('select trunkline.cancel_jobs(\'{"task": "send"}\'::jsonb)')
    [line] = rows(cli.text("log"))
    assert [cell.strip() for cell in line[2:5]] == [
        "cancel_jobs", "task=send", "3 jobs: cancelled 3",
    ]  # fmt: skip


def test_a_line_is_skimmed_in_80_columns(cli: Cli, calls: Calls) -> None:
    cli.text("limits", "set", "document/{document}", "--concurrency", "1")
    cli.text("limits", "pause", "document/{document}", "--reason", "the archive is moved")
    (job,) = calls.fill(1, task="send")
    calls.value("select trunkline.cancel(%s, 'sent by mistake')", job)
    with terminal(cli, "log", columns=80) as shown:
        assert shown.end() == 0
        head, cancelled, paused, created = shown.text.splitlines()
    assert head.split() == ["AGO", "ACTOR", "ACTION", "OBJECT", "CHANGE", "REASON"]
    # As much of a job id as the commands about jobs accept.
    assert str(job)[:13] in cancelled
    assert "status active → " in paused
    assert "the archive" in paused
    assert "concurrency 1" in created


def test_the_live_log_shows_new_lines_on_top(cli: Cli) -> None:
    cli.text("queues", "pause", "mail")
    with terminal(cli, "log", "--watch") as shown:
        shown.until("pause_queue")
        cli.text("queues", "resume", "mail")
        lines = shown.until("resume_queue").splitlines()
        assert ["resume_queue" in lines[1], "pause_queue" in lines[2]] == [True, True]
        shown.interrupt()
        assert shown.end() == 0
