"""`trunkline events send`, `jobs reset-step`, `jobs retry --fresh`, and `jobs show`."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.cli.driving import Cli
from tests.support.calls import Attempt, Calls
from trunkline.errors import UnknownRecordedStep, WrongState


def stepped(calls: Calls, task: str = "send") -> Attempt:
    """Start a job that has recorded one step."""
    calls.enqueue(task)
    attempt = calls.claim("w").attempts[0]
    calls.value(
        "select trunkline.record_steps('w', %s, '{1}', '{1}', '{read}', '{#1}', '{null}', %s)",
        [attempt.job],
        [Jsonb({"pages": 3})],
    )
    return attempt


def waiting(calls: Calls) -> Attempt:
    """Suspend a job that waits for an event."""
    attempt = stepped(calls)
    calls.value(
        "select trunkline.begin_wait('w', %s, 1, 2, 'event', 'approved', '#1', null, '1 hour')",
        attempt.job,
    )
    calls.batch("suspend", "w", [attempt])
    return attempt


def test_show_lists_steps_and_waits(cli: Cli, calls: Calls) -> None:
    job = waiting(calls).job
    shown = cli.text("jobs", "show", job)
    lines = shown[shown.index("steps") :].splitlines()
    assert lines[1].split() == ["STEP", "KIND", "KEY", "STATE", "ATTEMPT", "AT"]
    assert lines[2].split()[:5] == ["read", "step", "#1", "recorded", "1"]
    assert lines[3].split()[:6] == ["approved", "event", "#1", "waiting", "1", "until"]
    first, second = cli.json("jobs", "show", job)["steps"]
    assert (first["name"], first["result"]) == ("read", {"pages": 3})
    assert (second["state"], second["recorded_at"]) == ("waiting", None)
    assert "approved" in cli.text("jobs", "explain", job)


def test_send_an_event(cli: Cli, calls: Calls) -> None:
    job = waiting(calls).job
    sent = cli.text("events", "send", "approved", '{"by": "ada"}', "--job", str(job)[:13])
    assert sent == "Event approved delivered. 1 job will continue.\n"
    again = cli.text("events", "send", "approved", "--job", job)
    assert again.startswith("Event approved was already sent at ")
    found: Any = cli.json("events", "send", "paid", "7", "--key", "order", "--tenant", "acme")
    assert (found["outcome"], found["resumed"]) == ("stored", 0)
    assert cli.run("events", "send", "paid").exit_code == 2
    assert cli.run("events", "send", "paid", "{", "--key", "order").exit_code == 2


def test_reset_a_step(cli: Cli, calls: Calls) -> None:
    attempt = stepped(calls)
    with pytest.raises(WrongState):
        cli.run("jobs", "reset-step", attempt.job, "read")
    calls.batch("snooze", "w", [attempt])
    assert cli.json("jobs", "reset-step", attempt.job, "read", "--reason", "wrong")["deleted"] == 1
    with pytest.raises(UnknownRecordedStep):
        cli.run("jobs", "reset-step", attempt.job, "read")
    assert cli.json("log")[0]["reason"] == "wrong"


def test_show_and_reset_a_step_that_ran_once_for_a_workflow(cli: Cli, calls: Calls) -> None:
    attempt = stepped(calls)
    calls.value("select trunkline.begin_once('w', %s, 1, 2, 'prices')", attempt.job)
    calls.value("select trunkline.record_once('w', %s, 1, 'prices', '7')", attempt.job)
    calls.batch("snooze", "w", [attempt])
    shown = cli.text("jobs", "show", attempt.job)
    lines = shown[shown.index("steps") :].splitlines()
    assert lines[2].split()[:5] == ["prices", "once", "#1", "recorded", "1"]
    assert cli.json("jobs", "show", attempt.job)["steps"][0]["result"] == 7
    assert cli.json("jobs", "reset-step", attempt.job, "prices")["deleted"] == 1
    assert [step["name"] for step in cli.json("jobs", "show", attempt.job)["steps"]] == ["read"]


def test_retry_without_recorded_steps(cli: Cli, calls: Calls) -> None:
    attempt = stepped(calls, "once")
    calls.batch("fail", "w", [attempt])
    refused = cli.run("jobs", "retry", "--fresh", "--task", "once", "--yes")
    assert "--fresh takes ids" in refused.stderr
    assert cli.json("jobs", "show", attempt.job)["steps"]
    assert cli.text("jobs", "retry", "--fresh", attempt.job) == f"{attempt.job}  ready\n"
    assert cli.json("jobs", "show", attempt.job)["steps"] == []


def test_show_tells_which_results_are_in_the_store(cli: Cli, calls: Calls) -> None:
    calls.enqueue("send")
    attempt = calls.claim("w").attempts[0]
    results = [stored_result(calls, attempt, name, step) for name, step in FILES]
    calls.value(
        "select trunkline.record_steps('w', %s, '{1}', '{1}', '{read}', '{#1}', '{null}', %s)",
        [attempt.job],
        [results[0]],
    )
    shown = cli.text("jobs", "show", attempt.job)
    lines = shown[shown.index("steps") :].splitlines()
    assert lines[1].split()[-3:] == ["IN", "THE", "STORE"]
    assert lines[2].split()[-2:] == ["5.0", "MB"]
    calls.batch("complete", "w", [attempt], results=[results[1]])
    shown = cli.text("jobs", "show", attempt.job)
    assert "in the store, 5.0 MB; trunkline artifacts get " in shown
    (step,) = cli.json("jobs", "show", attempt.job)["steps"]
    assert step["bytes"] == 5_000_000
    (_, second) = (value.obj["$artifact"] for value in results)
    calls.value("select trunkline.delete_artifact(%s, 'not wanted')", second)
    assert "was in the store, 5.0 MB; deleted: not wanted" in cli.text("jobs", "show", attempt.job)


FILES = [("step.json", "read"), ("result.json", None)]


def stored_result(calls: Calls, attempt: Attempt, name: str, step: str | None) -> Jsonb:
    """Stage a file of five megabytes as a result; return the reference to it."""
    artifact, path = calls.connection.execute(
        "select artifact_id, path from trunkline.begin_artifact('w', %s, 1, %s, 'result',"
        " p_step => %s)",
        (attempt.job, name, step),
    ).fetchall()[0]
    calls.value(
        "select trunkline.stage_artifact('w', %s, 1, %s, 5000000, repeat('0', 64))",
        attempt.job,
        path,
    )
    return Jsonb({"$artifact": str(artifact)})
