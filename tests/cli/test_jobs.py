"""``trunkline jobs`` but tail."""

from __future__ import annotations

import json
import uuid
from datetime import datetime, timedelta
from pathlib import Path

import click
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.types.json import Jsonb

from tests.cli.driving import Cli, die, finish, process
from tests.support.calls import Calls
from tests.support.databases import Database
from trunkline.errors import (
    InvalidArgument,
    JobCancelled,
    JobFailed,
    PayloadTooLarge,
    TrunklineError,
    UnknownJob,
    UnknownTask,
    WaitTimeout,
    WrongState,
)

KEYS = (
    "job_id state task queue priority tenant attempt failures deferrals max_attempts "
    "created_at run_at claimed_at heartbeat_at lease_expires_at cancel_requested_at "
    "finished_at acknowledged_at worker progress phase message reason unique_key "
    "correlation_id retry_of tags last_error expires_at error_group workflow_id workflow_step "
    "workflow_item"
)


def test_list_shows_the_newest_first(cli: Cli, calls: Calls) -> None:
    first, second = calls.enqueue("send").job_id, calls.enqueue("once").job_id
    lines = cli.text("jobs", "list").splitlines()
    assert lines[0].split()[:3] == ["JOB", "STATE", "TASK"]
    # By id: of two that were made within one millisecond either may be the first.
    assert [line.split()[:3] for line in lines[1:]] == sorted(
        [[str(second), "ready", "once"], [str(first), "ready", "send"]], reverse=True
    )
    assert all(line == line.rstrip() for line in lines)


def test_list_filters_and_pages(cli: Cli, calls: Calls) -> None:
    (done,) = finish(calls)
    (dead,) = die(calls)
    waiting = [calls.enqueue("send").job_id for _ in range(3)]

    def listed(*options: object) -> list[str]:
        return [job["job_id"] for job in cli.json("jobs", "list", *options)]

    newest_first = sorted((str(job) for job in waiting), reverse=True)
    assert listed("--state", "dead", "--state", "completed") == [str(dead), str(done)]
    assert listed("--task", "once") == [str(dead)]
    assert listed("--queue", "mail", "--state", "ready") == newest_first
    assert listed("--limit", 2) == newest_first[:2]
    assert listed("--tenant", "nobody") == []
    assert cli.run("jobs", "list", "--tenant", "nobody").stderr == "No job matches.\n"


def test_list_as_json_has_stable_keys(cli: Cli, calls: Calls) -> None:
    calls.enqueue("send", payload={"secret": 1}, tags=["a"])
    (job,) = cli.json("jobs", "list")
    assert list(job) == KEYS.split()
    assert job["created_at"].endswith("+00:00")
    assert job["tags"] == ["a"]


def test_show_prints_everything(cli: Cli, calls: Calls) -> None:
    (job,) = die(calls, payload={"to": "ada"}, correlation_id="c-1", tags=["x", "y"])
    shown = cli.text("jobs", "show", job)
    for part in (str(job), "dead", "1 failed of 1 allowed", '"to": "ada"', "c-1", "x, y"):
        assert part in shown
    assert "ValueError: no such address" in shown
    assert "line 2" in shown
    found = cli.json("jobs", "show", job)
    assert found["job_id"] == str(job)
    assert found["payload"] == {"to": "ada"}
    assert found["errors"][0]["message"] == "no such address"


def test_show_has_a_line_for_each_error_with_the_value_that_was_refused(
    cli: Cli, calls: Calls
) -> None:
    """The value of a wrong result is all that is left of a call that was paid for."""
    refused = {"type": "WrongResult", "message": "not a number", "value": '"three"'}
    job = calls.enqueue("once").job_id
    calls.batch("fail", "w", calls.claim("w").attempts, errors=[Jsonb(refused)])
    (error,) = cli.json("jobs", "show", job)["errors"]
    lines = cli.text("jobs", "show", job).splitlines()
    place = lines.index("errors, newest last")
    moment = error["at"].replace("T", " ").partition(".")[0]
    assert lines[place + 1 :] == [
        f"  attempt 1, {moment}, failed on w",
        "    WrongResult: not a number",
        '    value: "three"',
    ]


def test_show_prints_what_a_job_used(cli: Cli, calls: Calls) -> None:
    """By attempt and limit, money once."""
    cli.text("limits", "set", "openai", "--tokens-per-minute", "100000")
    cli.text("quotas", "set", "budget/{tenant}", "--amount", "1M", "--unit", "tokens")
    calls.register("write", limits=["openai", "budget/{tenant}"], cost={"tokens": 10})
    job = calls.enqueue(task="write", tenant="acme").job_id
    assert [attempt.job for attempt in calls.claim("w").attempts] == [job]
    assert cli.json("jobs", "show", job)["usage"] == []
    assert "used" not in cli.text("jobs", "show", job)
    calls.value(
        "select trunkline.settle_job(%s, %s, %s)", job, 1, Jsonb({"tokens": 1234, "cost": 0.5})
    )
    line = {"attempt": 1, "calls": 1, "requests": 1, "tokens": 1234, "units": 0}
    assert cli.json("jobs", "show", job)["usage"] == [
        {"limit": "budget/{tenant}", "name": "budget/acme", **line, "cost": 0},
        {"limit": "openai", "name": "openai", **line, "cost": 0.5},
    ]
    shown = [row.split() for row in cli.text("jobs", "show", job).splitlines()]
    assert ["1", "openai", "1", "1", "1,234", "0.5000"] in shown
    assert ["1", "budget/acme", "1", "1", "1,234"] in shown


def test_a_role_that_may_not_read_usage_still_sees_the_job(
    database: Database, calls: Calls
) -> None:
    (job,) = finish(calls)
    producer = Cli(make_conninfo(database.superuser_dsn, options="-c role=trunkline_producer"))
    assert producer.json("jobs", "show", job)["usage"] is None
    assert str(job) in producer.text("jobs", "show", job)


def test_text_of_others_cannot_steer_the_terminal(cli: Cli, calls: Calls) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07\r\nOK \u202eevil [red]x[/red]"
    (job,) = die(calls, message=evil, payload={"a": evil}, tags=["\x9b31m"])
    for command in (
        ("jobs", "show", job),
        ("jobs", "list"),
        ("dead", "list"),
        ("jobs", "explain", job),
    ):
        shown = cli.text(*command)
        assert "owned" in shown or command[1] == "list"
        assert not set(shown) & {"\x1b", "\x07", "\r", "\x9b", "\u202e"}, command
    # Nor are square brackets taken for styles.
    assert "[red]x[/red]" in cli.text("jobs", "show", job)


def test_enqueue_by_name(cli: Cli, calls: Calls) -> None:
    made = cli.json(
        "jobs", "enqueue", "send", '{"to": "ada", "copies": 1}', "-a", "copies=2", "-a", "cc=x"
    )
    assert (made["created"], made["state"]) == (True, "ready")
    job = cli.json("jobs", "show", made["job_id"])
    assert job["payload"] == {"to": "ada", "copies": 2, "cc": "x"}
    assert job["queue"] == "mail"
    told = cli.text("jobs", "enqueue", "send")
    assert told.endswith("  ready\n")


def test_enqueue_takes_all_options(cli: Cli) -> None:
    made = cli.json(
        *("jobs", "enqueue", "send", "--queue", "slow", "--priority", "-7", "--delay", "1h30m"),
        *("--unique-key", "k", "--tenant", "acme", "--correlation-id", "c", "--max-attempts", 9),
        *("--tag", "a", "--tag", "b"),
    )
    assert made["state"] == "scheduled"
    job = cli.json("jobs", "show", made["job_id"])
    assert (job["queue"], job["priority"], job["tenant"]) == ("slow", -7, "acme")
    assert (job["unique_key"], job["correlation_id"], job["max_attempts"]) == ("k", "c", 9)
    assert job["tags"] == ["a", "b"]
    again = cli.run(
        "jobs", "enqueue", "send", "--unique-key", "k", "--tenant", "acme", "--queue", "slow"
    )
    assert again.stdout == f"{made['job_id']}  scheduled already: the key belongs to this job\n"
    later = cli.json("jobs", "enqueue", "send", "--at", "2099-01-31T12:00")
    assert later["run_at"] == "2099-01-31T12:00:00+00:00"
    one = cli.json("jobs", "enqueue", "send", "--idempotency-key", "i")
    assert cli.json("jobs", "enqueue", "send", "--idempotency-key", "i")["job_id"] == one["job_id"]


def test_enqueue_takes_a_deadline_for_the_start(cli: Cli) -> None:
    made = cli.json("jobs", "enqueue", "send", "--expires", "10m")
    job = cli.json("jobs", "show", made["job_id"])
    left = datetime.fromisoformat(job["expires_at"]) - datetime.fromisoformat(job["created_at"])
    assert timedelta(minutes=9) < left < timedelta(minutes=11)
    assert "expires" in cli.text("jobs", "show", made["job_id"])
    assert "expires" in cli.text("jobs", "explain", made["job_id"])
    made = cli.json("jobs", "enqueue", "send", "--expires", "2099-01-31T12:00")
    job = cli.json("jobs", "show", made["job_id"])
    assert job["expires_at"] == "2099-01-31T12:00:00+00:00"
    refused = cli.run("jobs", "enqueue", "send", "--expires", "soon")
    assert refused.exit_code == click.UsageError.exit_code
    assert "is not a duration" in refused.stderr
    with pytest.raises(InvalidArgument, match="later than now"):
        cli.run("jobs", "enqueue", "send", "--expires", "2001-01-31")


def test_enqueue_compares_a_repeated_request_with_the_first(cli: Cli, calls: Calls) -> None:
    request = ("jobs", "enqueue", "send", "--idempotency-key", "i")
    made = cli.json(*request, '{"to": "ada", "copies": 1}')
    again = cli.json(*request, "--priority", 3, '{ "copies": 1.0, "to": "ada" }')
    assert (again["job_id"], again["created"]) == (made["job_id"], False)
    refused = process(*request, '{"to": "bob"}', dsn=cli.dsn)
    assert refused.returncode == 1
    assert "idempotency key was used for another request" in refused.stderr
    assert "payload" in refused.stderr
    assert "bob" not in refused.stderr


def test_enqueue_warns_about_a_job_of_another_task(cli: Cli, calls: Calls) -> None:
    for task in ("stamp", "anchor"):
        calls.register(task, profile="evidence")
    stamp = calls.enqueue("stamp", unique_key="d").job_id
    done = process("jobs", "enqueue", "anchor", "--unique-key", "d", dsn=cli.dsn)
    assert f"{stamp}  ready already: the key belongs to this job" in done.stdout
    assert f"enqueuing anchor returned job {stamp} of task stamp" in done.stderr


def test_enqueue_reads_files_and_standard_input(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "payload.json"
    file.write_text('{"from": "a file"}')
    made = cli.json("jobs", "enqueue", "send", f"@{file}")
    assert cli.json("jobs", "show", made["job_id"])["payload"] == {"from": "a file"}
    piped = process(
        "jobs", "enqueue", "send", "-", "--json", dsn=cli.dsn, answer='{"from": "a pipe"}'
    )
    found = cli.json("jobs", "show", json.loads(piped.stdout)["job_id"])
    assert found["payload"] == {"from": "a pipe"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{to: ada}"], "is not JSON"),
        (["[1]"], "must be a JSON object"),
        (["@/nowhere"], "cannot read the payload"),
        (["-a", "novalue"], "is not NAME=VALUE"),
        (["--delay", "soon"], "is not a duration"),
        (["--delay", "1s", "--at", "2030-01-01"], "not both"),
        (["--at", "tomorrow"], "is not a time"),
        (["--timeout", "1s"], "is for --wait"),
        (["--priority", "99"], "not in the range"),
    ],
)
def test_enqueue_explains_bad_input(cli: Cli, arguments: list[str], message: str) -> None:
    result = cli.run("jobs", "enqueue", "send", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["nonsense"], UnknownTask),
        (["send", json.dumps({"a": "x" * 300_000})], PayloadTooLarge),
        (["send", "--queue", "x" * 201], InvalidArgument),
    ],
)
def test_the_engine_refuses(cli: Cli, arguments: list[str], error: type[TrunklineError]) -> None:
    with pytest.raises(error) as caught:
        cli.run("jobs", "enqueue", *arguments)
    assert caught.value.hint


def test_enqueue_waits_for_the_end(cli: Cli, calls: Calls) -> None:
    (done,) = finish(calls, idempotency_key="done")
    wait = ("jobs", "enqueue", "send", "--idempotency-key", "done", "--wait")
    waited = cli.run(*wait)
    assert waited.exit_code == 0
    assert json.loads(waited.stdout) is None
    assert waited.stderr == f"{done}  completed\n"
    waited = cli.run(*wait, "--json")
    assert json.loads(waited.stdout)["job_id"] == str(done)
    assert waited.stderr == ""

    die(calls, idempotency_key="dead")
    with pytest.raises(JobFailed, match="no such address"):
        cli.run("jobs", "enqueue", "once", "--idempotency-key", "dead", "--wait")

    gone = calls.enqueue("send", idempotency_key="gone").job_id
    calls.change("cancel", gone, "no more")
    with pytest.raises(JobCancelled, match="no more"):
        cli.run("jobs", "enqueue", "send", "--idempotency-key", "gone", "--wait")

    with pytest.raises(WaitTimeout):
        cli.run("jobs", "enqueue", "send", "--wait", "--timeout", "100ms")


def test_cancel(cli: Cli, calls: Calls) -> None:
    waiting = calls.enqueue("send").job_id
    assert cli.text("jobs", "cancel", waiting, "--reason", "why not") == f"{waiting}  cancelled\n"
    assert cli.json("jobs", "show", waiting)["reason"] == "why not"
    running = calls.enqueue("send").job_id
    calls.claim("w")
    (finished,) = finish(calls)
    told = cli.text("jobs", "cancel", running, finished).splitlines()
    assert told == [
        f"{running}  running; its worker was asked to stop",
        f"{finished}  had ended before: completed",
    ]
    assert cli.json("jobs", "cancel", running) == [
        {"job_id": str(running), "outcome": "requested", "state": "running"}
    ]


def test_several_ids_go_on_after_a_refusal(cli: Cli, calls: Calls) -> None:
    one, other = calls.enqueue("send").job_id, calls.enqueue("send").job_id
    unknown = uuid.uuid4()
    result = cli.run("jobs", "cancel", one, unknown, other)
    assert result.exit_code == 1
    assert [line.split()[0] for line in result.stdout.splitlines()] == [str(one), str(other)]
    assert f"{unknown}  refused: unknown job" in result.stderr
    assert "1 of 3 jobs refused." in result.stderr
    answers = json.loads(cli.run("jobs", "cancel", one, unknown, "--json").stdout)
    assert answers[0]["outcome"] == "ended"
    assert answers[1]["error"]["code"] == "unknown_job"


def test_retry(cli: Cli, calls: Calls) -> None:
    (dead,) = die(calls)
    (done,) = finish(calls)
    (other,) = finish(calls)
    assert cli.text("jobs", "retry", dead) == f"{dead}  ready\n"
    (again,) = cli.json("jobs", "retry", done)
    assert again["created"] is True
    assert cli.json("jobs", "show", again["job_id"])["retry_of"] == str(done)
    assert cli.text("jobs", "retry", other).endswith("  ready, a new job\n")
    assert cli.text("jobs", "retry", done) == f"{again['job_id']}  ready already\n"
    with pytest.raises(WrongState):
        cli.run("jobs", "retry", dead)


def test_explain_gives_reasons_and_what_to_do(cli: Cli, calls: Calls) -> None:
    job = calls.enqueue("send").job_id
    told = cli.text("jobs", "explain", job)
    assert "No live worker serves queue mail and task send" in told
    assert "trunkline worker APP" in told
    assert "ahead of it" not in told
    behind = calls.enqueue("send").job_id
    assert "1 job ahead of it" in cli.text("jobs", "explain", behind)
    cli.text("queues", "pause", "mail", "--reason", "provider is down")
    assert "trunkline queues resume mail" in cli.text("jobs", "explain", job)
    cli.text("settings", "set", "claims_enabled", "false")
    assert "trunkline settings reset claims_enabled" in cli.text("jobs", "explain", job)
    reasons = [reason["reason"] for reason in cli.json("jobs", "explain", job)]
    assert reasons == ["claims_disabled", "queue_paused", "no_worker", "waiting_its_turn"]


def test_explain_of_other_states(cli: Cli, calls: Calls) -> None:
    later = calls.enqueue("send", delay="1 hour").job_id
    assert "It is not due before" in cli.text("jobs", "explain", later)
    (dead,) = die(calls)
    shown = cli.text("jobs", "explain", dead)
    assert shown.endswith(f"Run it again with: trunkline dead replay {dead}\n")
    running = calls.enqueue("send").job_id
    calls.claim("the-worker")
    assert "attempt 1 on the-worker" in cli.text("jobs", "explain", running)
    cli.text("jobs", "cancel", running)
    assert "Its worker was asked to stop." in cli.text("jobs", "explain", running)


@pytest.mark.parametrize(
    "command",
    [
        "jobs show",
        "jobs show --watch",
        "jobs cancel",
        "jobs retry",
        "jobs explain",
        "dead show",
        "dead replay",
        "dead discard --yes",
        "dead acknowledge",
    ],
)
def test_an_unknown_id_is_a_clear_error(cli: Cli, command: str) -> None:
    unknown = uuid.uuid4()
    with pytest.raises(UnknownJob) as caught:
        cli.run(*command.split(), unknown)
    assert str(unknown) in str(caught.value)
    assert "Check the id" in caught.value.hint


def test_watching_an_ended_job_ends_at_once(cli: Cli, calls: Calls) -> None:
    (done,) = finish(calls)
    shown = cli.text("jobs", "show", done, "--watch")
    assert "completed" in shown
    assert json.loads(cli.text("jobs", "show", done, "--watch", "--json"))["state"] == "completed"


@pytest.mark.parametrize("text", ["01a1e25", "not-an-id", "01a1e25g", ""])
def test_what_is_no_id_is_wrong_usage(cli: Cli, text: str) -> None:
    result = cli.run("jobs", "show", text)
    assert result.exit_code == click.UsageError.exit_code
    assert "neither a job id nor the first 8 or more digits of one" in result.stderr
