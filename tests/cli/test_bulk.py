"""Changes of many jobs: previewed, confirmed, in batches, interrupted and continued."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess

import pytest

from tests.cli.driving import PROGRAM, Cli, clean_environment, die, finish
from tests.cli.terminal import Terminal
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.internals.locks import lock_jobs
from tests.support.waiting import until
from trunkline.errors import InvalidArgument, InvalidFilter, UnknownJob


def states(calls: Calls) -> dict[str, int]:
    rows = calls.connection.execute("select state, count(*) from trunkline.jobs group by state")
    return dict(rows.fetchall())


def test_a_filter_cancels_waiting_jobs_and_asks_running_ones_to_stop(
    cli: Cli, calls: Calls
) -> None:
    calls.fill(3, task="send", tags=["spring"])
    calls.claim("w", 1)
    calls.fill(2, task="send")
    arguments = ("jobs", "cancel", "--task", "send", "--tag", "spring")
    shown = cli.run(*arguments)
    assert shown.exit_code == 2
    assert "Cancel 3 jobs (2 ready, 1 running)?" in shown.stderr
    assert "Pass --yes" in shown.stderr
    assert cli.text(*arguments, "--yes", "--reason", "over") == (
        "2 jobs cancelled, 1 asked to stop.\n"
    )
    assert states(calls) == {"cancelled": 2, "running": 1, "ready": 2}
    [entry] = calls.connection.execute("select action, reason from trunkline.operator_log")
    assert entry == ("cancel_jobs", "over")


def test_a_dry_run_shows_counts_and_a_sample(cli: Cli, calls: Calls) -> None:
    jobs = calls.fill(12, task="send", tags=["spring"])
    arguments = ("jobs", "cancel", "--tag", "spring", "--dry-run")
    first, _, *rows = cli.text(*arguments).splitlines()
    assert first == "12 jobs (12 ready) would be cancelled. The newest:"
    assert [row.split()[0] for row in rows] == [str(job) for job in sorted(jobs)[:1:-1]]
    document = cli.json(*arguments)
    assert document["action"] == "cancel"
    assert document["counts"][0] == {"state": "ready", "jobs": 12, "more": False}
    assert len(document["sample"]) == 10
    assert states(calls) == {"ready": 12}


def test_every_field_of_a_filter_is_an_option(cli: Cli, calls: Calls) -> None:
    mine = calls.enqueue(
        "send",
        queue="slow",
        tenant="acme",
        tags=["x"],
        correlation_id="c",
        unique_key="k",
    ).job_id
    calls.enqueue("send")
    for option in (
        ("--queue", "slow"),
        ("--tenant", "acme"),
        ("--tag", "x"),
        ("--correlation-id", "c"),
        ("--unique-key", "k"),
        ("--unique-key", "k", "--state", "ready", "--created-after", "1h"),
    ):
        [job] = cli.json("jobs", "list", *option)
        assert job["job_id"] == str(mine)
        counts = {row["state"]: row["jobs"] for row in cli.json("jobs", "count", *option)}
        assert (counts["ready"], sum(counts.values())) == (1, 1)
    assert cli.json("jobs", "list", "--created-before", "1h") == []
    assert len(cli.json("jobs", "list", "--created-before", "2099-01-01")) == 2
    (dead,) = die(calls, message="No Such address")
    assert [job["job_id"] for job in cli.json("jobs", "list", "--error", "such ADDRESS")] == [
        str(dead)
    ]
    assert len(cli.json("jobs", "list", "--finished-after", "1h")) == 1
    assert cli.json("jobs", "list", "--finished-before", "1h") == []


@pytest.mark.parametrize(
    "arguments",
    [
        "jobs cancel",
        "jobs retry --yes",
        "jobs discard --yes",
        "jobs cancel --state ready --state running --yes",
        "jobs reprioritise --priority 1 --dry-run",
        "dead replay --yes",
        "dead discard --yes --json",
        "dead acknowledge --yes",
    ],
)
def test_an_empty_filter_is_refused_without_all(cli: Cli, calls: Calls, arguments: str) -> None:
    calls.fill(1, task="send")
    result = cli.run(*arguments.split())
    assert result.exit_code == 2
    assert "--all" in result.stderr or "by a filter such as --task" in result.stderr
    assert states(calls) == {"ready": 1}


def test_an_empty_text_is_no_empty_filter(cli: Cli, calls: Calls) -> None:
    """A variable of a script that is not set must not mean every job."""
    calls.fill(1, task="send")
    with pytest.raises(InvalidFilter):
        cli.run("jobs", "cancel", "--tag", "", "--yes")
    assert states(calls) == {"ready": 1}


def test_all_allows_an_empty_filter(cli: Cli, calls: Calls) -> None:
    calls.fill(3, task="send")
    assert cli.json("jobs", "cancel", "--all", "--yes") == {
        "action": "cancel",
        "jobs": 3,
        "outcomes": {"cancelled": 3},
        "cursor": None,
        "interrupted": False,
    }


def test_jobs_are_reprioritised_by_id_and_by_filter(cli: Cli, calls: Calls) -> None:
    job, *_ = calls.fill(3, task="send")
    assert cli.text("jobs", "reprioritise", job, "--priority", 7) == f"{job}  reprioritised\n"
    assert cli.text("jobs", "reprioritise", "--task", "send", "--priority", 7, "--yes") == (
        "2 jobs reprioritised, 1 unchanged.\n"
    )
    assert {row["priority"] for row in cli.json("jobs", "list")} == {7}
    assert cli.run("jobs", "reprioritise", job).exit_code == 2


def test_finished_jobs_are_retried_only_if_the_filter_names_their_state(
    cli: Cli, calls: Calls
) -> None:
    finish(calls, tags=["spring"])
    die(calls, tags=["spring"])
    arguments = ("jobs", "retry", "--tag", "spring", "--yes")
    assert cli.text(*arguments) == "1 job replayed.\n"
    assert cli.text(*arguments, "--state", "completed") == "1 job copied and run again.\n"


def test_a_short_id_stands_for_a_job(cli: Cli, calls: Calls) -> None:
    job = calls.enqueue("send").job_id
    short = str(job)[:18]
    assert cli.json("jobs", "show", short)["job_id"] == str(job)
    assert cli.text("jobs", "explain", short)
    assert cli.text("jobs", "cancel", short) == f"{job}  cancelled\n"
    with pytest.raises(UnknownJob):
        cli.run("jobs", "show", "00000000")


def test_an_ambiguous_id_lists_the_candidates(cli: Cli, calls: Calls) -> None:
    """Ids of a batch differ at their ends only."""
    jobs = calls.fill(3, task="send")
    short = str(jobs[0])[:18]
    with pytest.raises(InvalidArgument) as refused:
        cli.run("jobs", "cancel", short)
    assert all(str(job) in str(refused.value) for job in jobs)
    assert "more digits" in refused.value.hint
    result = cli.run("jobs", "cancel", short, jobs[0])
    assert result.exit_code == 1
    assert f"{short}  refused: several jobs" in result.stderr
    assert states(calls) == {"ready": 2, "cancelled": 1}


def running_cancel(cli: Cli, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PROGRAM, "jobs", "cancel", "--task", "send", "--yes", *options],
        env=clean_environment(cli.dsn),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_ctrl_c_stops_after_the_batch_and_names_the_command_that_continues(
    cli: Cli, calls: Calls, database: Database
) -> None:
    """Nothing is half done, and the counts of both parts add up."""
    jobs = sorted(calls.fill(2500, task="send"), reverse=True)
    with database.connect(autocommit=False) as other:
        # A job of the second batch is locked, so the command waits in the middle of it.
        lock_jobs(other, "waiting", jobs[1500])
        command = running_cancel(cli)
        assert command.stderr is not None
        until(lambda: states(calls).get("cancelled") == 1000, "the first batch ends")
        until(lambda: waits_for_a_lock(calls), "the second batch waits")
        command.send_signal(signal.SIGINT)
        while "Stopping after this batch." not in command.stderr.readline():
            assert command.poll() is None
        other.rollback()
    out, error = command.communicate(timeout=300)
    assert (command.returncode, out) == (130, "2,000 jobs cancelled.\n")
    assert states(calls) == {"cancelled": 2000, "ready": 500}
    [line] = error.splitlines()
    words = shlex.split(line.removeprefix("Interrupted. Continue with: "))
    assert words[:-1] == ["trunkline", "jobs", "cancel", "--task", "send", "--yes", "--cursor"]
    assert cli.text(*words[1:]) == "500 jobs cancelled.\n"
    assert states(calls) == {"cancelled": 2500}


def test_a_second_ctrl_c_interrupts_the_batch(cli: Cli, calls: Calls, database: Database) -> None:
    jobs = sorted(calls.fill(2500, task="send"), reverse=True)
    with database.connect(autocommit=False) as other:
        lock_jobs(other, "waiting", jobs[1500])
        command = running_cancel(cli)
        assert command.stderr is not None
        until(lambda: states(calls).get("cancelled") == 1000, "the first batch ends")
        until(lambda: waits_for_a_lock(calls), "the second batch waits")
        command.send_signal(signal.SIGINT)
        while "Press Ctrl-C again" not in command.stderr.readline():
            assert command.poll() is None
        command.send_signal(signal.SIGINT)
        out, error = command.communicate(timeout=300)
    assert (command.returncode, out) == (130, "1,000 jobs cancelled.\n")
    assert states(calls) == {"cancelled": 1000, "ready": 1500}
    words = shlex.split(error.strip().removeprefix("Interrupted. Continue with: "))
    assert cli.text(*words[1:]) == "1,500 jobs cancelled.\n"


def waits_for_a_lock(calls: Calls) -> bool:
    return bool(
        calls.value(
            "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
            " and application_name = 'trunkline cli' and datname = current_database()"
        )
    )


def test_a_terminal_shows_a_bar_while_batches_run(
    cli: Cli, calls: Calls, database: Database
) -> None:
    jobs = sorted(calls.fill(2500, task="send"), reverse=True)
    with database.connect(autocommit=False) as other:
        lock_jobs(other, "waiting", jobs[1500])
        arguments = ("jobs", "cancel", "--task", "send")
        with Terminal(*PROGRAM, *arguments, dsn=cli.dsn, columns=80) as shown:
            shown.until("Cancel 2,500 jobs (2,500 ready)? [y/N]:")
            shown.type("y\r")
            shown.until("1,000 jobs cancelled", "━")
            other.rollback()
            assert shown.end() == 0
            assert shown.text.splitlines()[-1] == "2,500 jobs cancelled."


def test_a_lost_server_names_the_command_that_continues(
    cli: Cli, calls: Calls, database: Database
) -> None:
    jobs = sorted(calls.fill(2500, task="send"), reverse=True)
    with database.connect(autocommit=False) as other:
        lock_jobs(other, "waiting", jobs[1500])
        command = running_cancel(cli)
        until(lambda: waits_for_a_lock(calls), "the second batch waits")
        database.superuser().execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name = 'trunkline cli' and datname = current_database()"
        )
        out, error = command.communicate(timeout=300)
    assert (command.returncode, out) == (1, "1,000 jobs cancelled.\n")
    line = error.splitlines()[0]
    words = shlex.split(line.removeprefix("Not finished. Continue with: "))
    assert "Error:" in error
    assert cli.text(*words[1:]) == "1,500 jobs cancelled.\n"


def test_the_command_that_continues_shows_no_password(cli: Cli, calls: Calls) -> None:
    calls.fill(3, task="send")
    listed = cli.run(
        *("jobs", "list", "--dsn", cli.dsn, "--limit", 2, "--task", "send", "--created-after", "2h")
    )
    [line] = listed.stderr.splitlines()
    words = shlex.split(line.removeprefix("Next page: "))
    assert words[words.index("--dsn") + 1] == "URI"
    # An age is a time then, so that the next page has the same bound.
    assert re.match(r"\d{4}-\d\d-\d\dT", words[words.index("--created-after") + 1])
    words[words.index("URI")] = cli.dsn
    assert len(cli.json(*words[1:])) == 1


def test_wrong_usage_of_bulk_options(cli: Cli, calls: Calls) -> None:
    (job,) = die(calls)
    for arguments, message in (
        (("jobs", "cancel", job, "--task", "send"), "not by both"),
        (("jobs", "cancel", job, "--cursor", "x"), "ids need none"),
        (("dead", "replay", job, "--rate", "5/s"), "--rate is for a filter"),
        (("dead", "replay", "--all", "--stop-at", "10%"), "--stop-at is for --rate"),
        (("dead", "replay", "--all", "--rate", "5"), "write 5/s"),
        (("dead", "replay", "--all", "--rate", "0/s"), "write 5/s"),
        (("dead", "replay", "--all", "--rate", "5/s", "--stop-at", "0.1"), "write 10%"),
        (("jobs", "list", "--created-after", "soon"), "is not a duration"),
        (("jobs", "list", "--created-after", "not-a-time"), "is not a time"),
    ):
        result = cli.run(*arguments)
        assert result.exit_code == 2, arguments
        assert message in result.stderr
    with pytest.raises(InvalidArgument):
        cli.run("jobs", "list", "--cursor", "nonsense")


def test_discard_takes_no_state_because_only_dead_letters_are_deleted(
    cli: Cli, calls: Calls
) -> None:
    """A state that the command ignored would delete jobs other than those that were named."""
    die(calls, tags=["spring"])
    finish(calls, tags=["spring"])
    result = cli.run("jobs", "discard", "--state", "completed", "--tag", "spring", "--yes")
    assert (result.exit_code, "No such option" in result.stderr) == (2, True)
    assert states(calls) == {"dead": 1, "completed": 1}
    assert cli.text("jobs", "discard", "--tag", "spring", "--yes") == "1 dead letter discarded.\n"
    assert states(calls) == {"completed": 1}


def test_the_answer_no_changes_nothing_and_is_confirmed(cli: Cli, calls: Calls) -> None:
    calls.fill(2, task="send")
    with Terminal(*PROGRAM, "jobs", "cancel", "--all", dsn=cli.dsn, columns=80) as shown:
        shown.until("Cancel 2 jobs (2 ready)? [y/N]:")
        assert shown.answer("n") == 130
        assert "Nothing was changed." in shown.text
        assert "Interrupted" not in shown.text
    assert states(calls) == {"ready": 2}
