"""What an operator reads in a terminal of 80 columns."""

from __future__ import annotations

from psycopg.types.json import Jsonb

from tests.cli.driving import Cli, die
from tests.cli.test_terminal import terminal
from tests.support.calls import Calls


def screen(cli: Cli, *arguments: str) -> list[str]:
    """Return the lines that a command shows."""
    with terminal(cli, *arguments, columns=80) as shown:
        assert shown.end() == 0
        return shown.text.splitlines()


def line_of(lines: list[str], start: str) -> str:
    (line,) = [line for line in lines if line.startswith(start)]
    return line


def test_a_limit_is_shown_with_its_name_its_load_and_its_pause(cli: Cli, calls: Calls) -> None:
    cli.text("limits", "set", "openai", "--requests-per-minute", 500, "--concurrency", 50)
    cli.text("limits", "set", "document/{document}", "--concurrency", 1)
    calls.register("ask", limits=["openai"])
    calls.fill(60, task="ask")
    calls.claim("w", 50)
    retry = Jsonb({"retry_after": 1830, "reason": "429"})
    calls.value("select trunkline.observe_limit('openai', %s)", retry)
    lines = screen(cli, "limits", "list")
    assert lines[0].split() == ["LIMIT", "RUNNING", "REQ/MIN", "WAITING"]
    assert line_of(lines, "openai").split()[2:5] == ["50/50", "50/500", "10"]
    assert "paused for 30m" in line_of(lines, "openai")
    assert "…" not in "".join(lines)


def test_the_note_of_a_quota_is_whole(cli: Cli, calls: Calls) -> None:
    cli.text("quotas", "set", "budget", "--amount", "5M", "--unit", "tokens", "--period", "month")
    calls.register("ask", limits=["budget"], cost={"tokens": 4_000_000})
    calls.fill(1, task="ask")
    calls.claim("w")
    lines = screen(cli, "quotas", "list")
    assert "4,000,000/5,000,000 tokens" in line_of(lines, "budget")
    assert line_of(lines, "budget").endswith("low priorities wait")


def test_a_worker_is_shown_with_its_whole_name_and_queues(cli: Cli, calls: Calls) -> None:
    calls.value(
        "select trunkline.register_worker('web-1-4711', array['mail', 'documents'], null,"
        " 'app-host-1.internal', 4711, '1.2.0')"
    )
    line = line_of(screen(cli, "workers", "list"), "web-1-4711 ")
    assert "mail, documents" in line


def test_a_task_is_shown_with_its_limits_and_its_schedule(cli: Cli, calls: Calls) -> None:
    calls.register("summarise", queue="documents", limits=["openai", "model/{model}"])
    payload = '{"model": "large"}'
    cli.text("schedules", "set", "nightly", "0 3 * * *", "summarise", "--payload", payload)
    lines = screen(cli, "tasks", "list")
    assert lines[0].split()[:5] == ["TASK", "QUEUE", "LIMITS", "SCHEDULE", "LEASE"]
    assert "HARD" not in lines[0]
    assert "openai, model/{model}" in line_of(lines, "summarise")
    assert "0 3 * * *" in line_of(lines, "summarise")


def test_settings_and_duties_have_room_to_say_what_they_do(cli: Cli) -> None:
    assert "Lease of tasks that do not" in line_of(screen(cli, "settings", "list"), "lease ")
    assert "Takes back jobs whose lease or hard" in line_of(
        screen(cli, "duties", "list"), "reclaim"
    )


def test_columns_that_do_not_fit_are_left_out_and_not_cut(cli: Cli, calls: Calls) -> None:
    calls.register("summarise", queue="documents", limits=["openai", "document/{document}"])
    cli.text("schedules", "set", "nightly", "0 3 * * *", "once")
    lines = screen(cli, "tasks", "list")
    assert "…" not in "".join(lines)
    assert "openai, document/{document}" in line_of(lines, "summarise")


def test_the_log_gives_room_to_the_change(cli: Cli, calls: Calls) -> None:
    limit = "documents_of_the_archive/{document}"
    cli.text("limits", "set", limit, "--concurrency", 1)
    calls.connection.execute("select set_config('trunkline.actor', 'a.person@example.org', false)")
    calls.value("select trunkline.set_limit(%s, %s)", limit, '{"requests_per_minute": 70}')
    lines = screen(cli, "log")
    assert any("requests_per_minute none → 70" in line for line in lines)


def test_the_tail_shows_short_ids_and_the_whole_error(cli: Cli, calls: Calls) -> None:
    (dead,) = die(calls, message="no such address")
    cli.text("dead", "acknowledge", dead)
    (line, acknowledged) = screen(cli, "jobs", "tail", "--no-follow", "--lines", "2")
    assert line.split()[1:3] == ["dead", str(dead)[:18]]
    assert line.endswith("ValueError: no such address")
    assert acknowledged.split()[1:3] == ["acknowledged", str(dead)[:18]]
    assert cli.json("jobs", "show", line.split()[2])["job_id"] == str(dead)


def test_the_tail_shows_whole_ids_of_a_batch_after_its_first(cli: Cli, calls: Calls) -> None:
    """Ids of a batch differ in their last digits only."""
    jobs = {str(job) for job in calls.fill(3, task="send")}
    lines = screen(cli, "jobs", "tail", "--no-follow")
    shown = [line.split()[2] for line in lines]
    assert len({*shown}) == 3
    assert len({*shown} & jobs) == 2


def test_a_delayed_job_has_its_delay_in_the_tail_and_its_time_in_explain(
    cli: Cli, calls: Calls
) -> None:
    job = cli.json("jobs", "enqueue", "send", "--delay", "90s")["job_id"]
    (line,) = screen(cli, "jobs", "tail", "--no-follow")
    assert line.endswith("send [mail] in 1m30s")
    sentence = " ".join(screen(cli, "jobs", "explain", job))
    assert sentence.startswith("It is not due before 20")
    assert "not due yet" not in sentence
