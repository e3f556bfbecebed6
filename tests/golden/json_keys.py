"""What commands print with `--json`: keys and types, observed by running each of them.

The commands run one after another on a database in which a `Story` was played, some of them
several times, so that a key is seen with all its types. `null` alone means that the situations
here never fill it. Commands with `--json` that are not run here are in `NOT_RUN`, with the reason.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from tests.cli.driving import Cli, process
from tests.golden.shapes import sorted_shape
from tests.golden.story import Story
from tests.support import databases, processes
from tools.generate_reference_cli import commands
from trunkline.artifacts import LocalStore
from trunkline.artifacts.address import VARIABLE

__all__ = ["NOT_RUN", "lines"]

NOT_RUN = {
    "trunkline demo": "runs for several seconds on its own server",
    "trunkline profile demo": "runs for half a minute on its own server",
}
# A job that does not exist.
_NOBODY = UUID(int=1)
# A table of the older system, as far as a dry run reads it.
_OLD_FILES = """
create schema old;
create table old.shell_files (
  id uuid primary key default gen_random_uuid(), patient_id uuid, processing_error text
);
"""


class Printed:
    """Runs commands and keeps what they print, by the name of the command."""

    def __init__(self, dsn: str) -> None:
        self.cli = Cli(dsn)
        self.documents: dict[str, list[Any]] = {}
        self.names = sorted(
            (name for name, command, _ in commands() if _has_json(command)), key=len, reverse=True
        )

    def run(self, *arguments: Any, cli: Cli | None = None) -> Any:
        """Run a command with --json, whatever its exit code, and keep its documents."""
        result = (cli or self.cli).run(*arguments, "--json")
        return self.keep(arguments, result.stdout)

    def keep(self, arguments: Iterable[Any], printed: str) -> Any:
        line = "trunkline " + " ".join(str(argument) for argument in arguments)
        name = next(name for name in self.names if f"{line} ".startswith(f"{name} "))
        found = [json.loads(text) for text in printed.splitlines()]
        assert found, line
        self.documents.setdefault(name, []).extend(found)
        return found[0]


def lines(story: Story, folder: Path) -> Iterator[str]:
    """Yield the keys that each command prints, after running all of them."""
    printed = Printed(story.database.dsn)
    _jobs(printed, story)
    _workflows(printed, story)
    _limits(printed, story)
    _files(printed, story, folder)
    _others(printed, story)
    _profiles(printed, story)
    _schema(printed, story, folder)
    _server(printed, folder)
    missing = set(printed.names) - set(printed.documents) - set(NOT_RUN)
    assert not missing, f"run them here: {', '.join(sorted(missing))}"
    for name in sorted(printed.names):
        if name in NOT_RUN:
            yield f"{name}: not run here, {NOT_RUN[name]}"
        for line in sorted_shape(printed.documents.get(name, ())):
            yield f"{name}: {line}"
    failed = process("jobs", "show", "not-an-id", "--json", dsn=story.database.dsn)
    refused = process("queues", "resume", "no such queue", "--json", dsn=story.database.dsn)
    for line in sorted_shape(json.loads(one.stderr) for one in (failed, refused)):
        yield f"error of any command: {line}"


def _has_json(command: Any) -> bool:
    return any("--json" in parameter.opts for parameter in command.params)


def _jobs(printed: Printed, story: Story) -> None:
    run = printed.run
    run("jobs", "enqueue", "once", "--correlation-id", "c", "--unique-key", "u")
    run("jobs", "enqueue", "once", "--delay", "1h", "--tenant", "acme", "--tag", "urgent")
    # The tail shows a day, and most of the story is older.
    failed = story.start("audited", "printing")
    story.end("fail", failed, errors=[Jsonb({"type": "ValueError", "message": "no"})])
    completed = story.claim("audited", "printing")[0]
    story.end("complete", completed)
    running = story.start("audited", "printing")
    story.worker.value(
        "select trunkline.progress('printing', %s, 1, 50, 'half', 'one')", running.job
    )
    run("jobs", "cancel", running.job, "--reason", "enough")
    run("jobs", "list", "--limit", 500)
    for job in _ids(story, "select job_id from trunkline.list_jobs(p_limit => 500)"):
        run("jobs", "show", job)
        run("jobs", "explain", job)
    (waiting,) = _ids(story, "select job_id from trunkline.jobs where unique_key = 'u'")
    run("jobs", "count")
    run("jobs", "cancel", "--unique-key", "u", "--dry-run")
    run("jobs", "reprioritise", waiting, "--priority", 1)
    run("jobs", "reprioritise", "--unique-key", "u", "--priority", 2, "--yes")
    run("jobs", "cancel", "--tag", "urgent", "--yes")
    run("jobs", "cancel", waiting, _NOBODY)
    run("jobs", "retry", completed.job, _NOBODY)
    run("jobs", "retry", "--correlation-id", "c", "--state", "cancelled", "--yes")
    run("jobs", "discard", "--tag", "none", "--yes")
    _steps(printed, story)
    run("jobs", "tail", "-n", 1000, "--no-follow")
    dead = _ids(story, "select job_id from trunkline.dead_letters")
    for job in dead:
        run("dead", "show", job)
    run("dead", "acknowledge", dead[0], _NOBODY)
    run("dead", "acknowledge", "--task", "once", "--dry-run")
    run("dead", "list")
    run("dead", "groups")
    run("dead", "edit", dead[2], '{"edited": true}')
    run("dead", "replay", dead[1])
    run("dead", "replay", "--all", "--dry-run")
    run("dead", "discard", dead[0], "--yes")
    run("dead", "discard", "--all", "--dry-run")
    run("dead", "replay", "--task", "once", "--rate", "1000/s", "--stop-at", "99%", "--yes")
    run("dead", "replay", "--all", "--yes")


def _workflows(printed: Printed, story: Story) -> None:
    run = printed.run
    story.producer.register("listed")
    steps = [
        {"name": "set", "task": "listed", "items": [{}, {}], "phase": "only"},
        {"name": "last", "task": "listed", "after": ["set"]},
    ]
    graph = Jsonb(
        {
            "name": "w",
            "steps": steps,
            "tenant": "acme",
            "unique_key": "u",
            "correlation_id": "c",
            "tags": ["a"],
            "params": {},
            "deadline": "1 day",
            "phases": [{"name": "only", "weight": 1}],
        }
    )
    start = "select workflow_id from trunkline.start_workflow(%s)"
    workflow = story.producer.value(start, graph)
    run("workflows", "show", workflow)
    failed, completed = story.claim("listed", "printing")
    story.end("fail", failed, retryable=[False])
    story.end("complete", completed)
    run("workflows", "list")
    run("workflows", "show", workflow)
    run("workflows", "graph", workflow)
    run("jobs", "show", failed.job)
    run("workflows", "retry", workflow)
    run("workflows", "cancel", workflow, "--reason", "enough")
    again = run("workflows", "rerun", workflow)["workflow_id"]
    run("workflows", "show", again)
    run("workflows", "cancel", again)
    run("workflows", "delete", again, "--yes")


def _ids(story: Story, query: str) -> list[UUID]:
    """Return the ids of jobs, oldest first; not from JSON, whose keys are what is compared."""
    return sorted(row[0] for row in story.operator.connection.execute(query.encode()).fetchall())


def _steps(printed: Printed, story: Story) -> None:
    run = printed.run
    job = story.start("stepped")
    record = "select trunkline.record_steps('w1', %s, %s, '{1}', '{read}', '{#1}', '{null}', '{1}')"
    story.worker.value(record, [job.job], [job.number])
    wait = "select trunkline.begin_wait('w1', %s, %s, 2, 'event', 'go', '#1', null, '1 hour')"
    story.worker.value(wait, job.job, job.number)
    story.end("suspend", job)
    run("jobs", "show", job.job)
    run("jobs", "reset-step", job.job, "read", "--key", "#1")
    run("events", "send", "go", "1", "--job", job.job)


def _limits(printed: Printed, story: Story) -> None:
    run = printed.run
    run("limits", "set", "printed", "--requests-per-minute", 10, "--concurrency", 2)
    run("limits", "set", "printed/{model}", "--tokens-per-hour", 10, "--depth-limit", 5)
    run("limits", "pause", "printed", "--reason", "broken")
    told = Jsonb({"retry_after": 3600, "reason": "busy"})
    story.worker.value("select trunkline.observe_limit('told', %s)", told)
    run("limits", "list")
    run("limits", "resume", "printed")
    for name in ("printed", "printed/{model}", "api", "narrow", "told"):
        run("limits", "show", name)
    run("quotas", "set", "printed", "--amount", 100, "--unit", "calls", "--period", "day")
    run("quotas", "list")
    run("quotas", "show", "printed")
    run("quotas", "show", "api")
    for by in ("task", "limit", "tenant"):
        run("quotas", "usage", "--by", by, "--since", "30d")
    run("breakers", "set", "printed", "--failures", 3)
    run("breakers", "trip", "printed", "--reason", "nonsense")
    run("breakers", "list")
    run("limits", "show", "printed")
    run("limits", "list")
    run("breakers", "reset", "printed")


def _files(printed: Printed, story: Story, folder: Path) -> None:
    run = printed.run
    store = LocalStore(folder / "files")
    story.producer.register("uploading")
    attempt = story.start("uploading", "printing", tenant="acme")
    job, number = attempt.job, attempt.number
    path = story.worker.value(
        "select path from trunkline.begin_artifact('printing', %s, %s, 'a.txt', 'text_plain')",
        job,
        number,
    )
    written = store.put(path, [b"content"])
    story.worker.value(
        "select trunkline.stage_artifact('printing', %s, %s, %s, %s, %s, 1.5)",
        job,
        number,
        path,
        written.bytes,
        written.sha256,
    )
    begun = story.worker.value(
        "select artifact_id from trunkline.begin_artifact('printing', %s, %s, 'b.txt')", job, number
    )
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = store.address
    try:
        place = ("--worker", "printing", "--job", job, "--attempt", number)
        run("artifacts", "upload-link", begun, *place)
        story.end("complete", attempt)
        run("artifacts", "list")
        ids = "select artifact_id from trunkline.artifacts where deleted_at is null"
        (artifact,) = _ids(story, ids)
        run("artifacts", "show", artifact)
        run("artifacts", "link", artifact)
        run("artifacts", "get", artifact, "--output", folder / "copy.txt")
        run("artifacts", "quota", "acme", "1MB")
        run("artifacts", "quota", "other", "none")
        run("artifacts", "usage")
        run("artifacts", "retention", "text_plain", "1d")
        run("artifacts", "retention", "text_plain", "none")
        run("artifacts", "delete", artifact, "--reason", "wrong", "--yes")
        run("artifacts", "list", "--deleted")
        run("artifacts", "show", artifact)
        run("store", "check")
        run("store", "adopt", "--yes")
        run("store", "removals")
        run("store", "rotate-secret")
    finally:
        del os.environ[VARIABLE]
        if before is not None:
            os.environ[VARIABLE] = before


def _others(printed: Printed, story: Story) -> None:
    run = printed.run
    run("queues", "age", "mail")
    run("queues", "limit", "mail", 5)
    run("queues", "pause", "mail", "--reason", "strike")
    run("queues", "list")
    run("queues", "resume", "mail")
    run("schedules", "set", "nightly", "0 3 * * *", "once", "--tenant", "acme")
    run("schedules", "set", "paused", "0 3 * * *", "once", "--paused", "--queue", "mail")
    run("schedules", "pause", "nightly")
    run("schedules", "resume", "nightly")
    story.database.move_time("25 hours")
    run("duties", "run")
    run("duties", "run", "promote")
    run("duties", "list")
    run("duties", "disable", "promote")
    run("duties", "enable", "promote")
    run("schedules", "list")
    run("schedules", "next", "nightly")
    run("schedules", "next", "--cron", "0 3 * * *")
    run("schedules", "remove", "nightly", "--yes")
    key = run("keys", "create", "deploy", "--role", "reader", "--expires", "90d")
    run("keys", "create", "acme", "--role", "producer", "--tenant", "acme")
    run("keys", "list")
    run("keys", "revoke", key["key_id"])
    run("keys", "list")
    run("settings", "set", "lease", "2 minutes")
    run("settings", "list")
    run("settings", "get", "lease")
    run("settings", "reset", "lease")
    run("tasks", "list")
    run("tasks", "show", "audited")
    run("tasks", "show", "limited")
    story.worker.connection.execute(
        "select trunkline.register_worker('printing', array['mail'], array['once'],"
        " 'host', 1, '1.0', null, '{\"signatures\": {\"once\": \"1\"}}')"
    )
    run("workers", "list", "--all")
    run("scale")
    run("workers", "drain", "printing")
    run("log", "--limit", 500)
    run("doctor")
    run("bench", "--jobs", 10, "--batch", 5)


def _profiles(printed: Printed, story: Story) -> None:
    run = printed.run
    run("profile", "list")
    for name in ("executor", "clinical"):
        run("profile", "install", name, "--dry-run")
        run("profile", "install", name, "--all")
        run("profile", "install", name)
        run("profile", "status", name)
    run("profile", "validate", "executor")
    run("profile", "troubleshoot", "executor", "--sql")
    story.database.connect().execute(_OLD_FILES)
    run("profile", "steps", "clinical")
    run("profile", "check", "clinical")
    run("profile", "step", "clinical", "checklist", "worker", "--evidence", "seen")
    run("profile", "step", "clinical", "cutover", "maintenance_on", "--dry-run")
    run("profile", "steps", "clinical")
    run("profile", "take-over", "clinical", "errors", "old.shell_files", "--dry-run")
    run("profile", "rollback", "executor", "--yes")


def _schema(printed: Printed, story: Story, folder: Path) -> None:
    run = printed.run
    run("schema", "install")
    run("schema", "upgrade")
    run("db", "backup", folder / "jobs.backup")
    story.database.superuser().execute("grant select on trunkline.jobs to public")
    run("schema", "verify")
    server = story.database.server
    with databases.fresh(server, databases.ensure_template(server)) as other:
        # The roles belong to the server, which other tests use.
        run("schema", "uninstall", "--keep-roles", "--yes", cli=Cli(other.dsn))


def _server(printed: Printed, folder: Path) -> None:
    """The commands of the embedded server, in a folder of its own."""
    home = folder / "home"

    def run(*arguments: Any) -> None:
        done = processes.trunkline(home, *map(str, arguments), "--json")
        printed.keep(arguments, done.stdout)

    run("db", "status")
    run("db", "start")
    try:
        run("db", "status")
        run("db", "dsn")
        run("db", "restore", folder / "jobs.backup")
    finally:
        run("db", "stop")
    run("db", "reset", "--yes")
    run("db", "reset")
