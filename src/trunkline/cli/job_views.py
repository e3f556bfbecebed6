"""One job in full, once or live."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from trunkline.artifacts.results import KIND, reference_of
from trunkline.cli.connection import Session
from trunkline.cli.output import (
    age,
    clean,
    data,
    job_data,
    moment,
    print_json,
    shown_error,
)
from trunkline.cli.quota_views import usage_columns
from trunkline.cli.tables import Column, console, facts, live, put, state_text, table
from trunkline.errors import SchemaForbidden, UnknownArtifact, UnknownWorkflow
from trunkline.model import Artifact, Job, JobState, JobStep, JobUsage, WorkflowStatus
from trunkline.operate import SyncOperator
from trunkline.telemetry import size

__all__ = ["show_one"]


def show_one(session: Session, job_id: UUID, *, watch: bool, as_json: bool) -> None:
    """Show one job with everything; with `watch`, until it has ended."""
    if not watch:
        view = _view(session.operator, job_id)
        if as_json:
            print_json(view.document())
        else:
            out = console()
            put(out, _detail(view, out))
        return
    live(
        lambda: _view(session.watcher, job_id),
        _detail,
        as_json=as_json,
        ended=lambda view: view.job.state.final,
        document=lambda view: view.document(),
    )


class _View(NamedTuple):
    job: Job
    # None if the role may not read the usage ledger.
    usage: Sequence[JobUsage] | None
    steps: Sequence[JobStep]
    now: datetime
    workflow: WorkflowStatus | None
    # The file of a result that is in the store.
    stored: Artifact | None

    def document(self) -> dict[str, Any]:
        found = {**job_data(self.job), "usage": self.usage, "steps": self.steps}
        if self.workflow is not None:
            found["workflow"] = {
                "id": self.workflow.id,
                "name": self.workflow.name,
                "step": self.step,
                "item": self.job.workflow_item,
            }
        return found

    @property
    def step(self) -> str | None:
        """The name of the job's step in its workflow."""
        if self.workflow is None or self.job.workflow_step is None:
            return None
        return self.workflow.steps[self.job.workflow_step].name


def _view(operator: SyncOperator, job_id: UUID) -> _View:
    job = operator.jobs.get(job_id)
    usage = None
    with suppress(SchemaForbidden):
        usage = operator.jobs.usage(job_id)
    workflow = None
    if job.workflow_id is not None:
        with suppress(UnknownWorkflow, SchemaForbidden):
            workflow = operator.workflows.get(job.workflow_id)
    steps, now = operator.jobs.steps(job_id), operator.now()
    return _View(job, usage, steps, now, workflow, _stored(operator, job))


def _stored(operator: SyncOperator, job: Job) -> Artifact | None:
    reference = reference_of(job.result)
    if reference is None:
        return None
    with suppress(UnknownArtifact):
        found = operator.artifacts.get(reference)
        # A handler may return such a reference itself.
        return found if found.job_id == job.id and found.kind == KIND else None
    return None


def _detail(view: _View, out: Console) -> RenderableType:
    job, usage, steps, now, *_ = view
    ended = job.finished_at
    took = ended - job.claimed_at if ended and job.claimed_at else None
    waited = job.claimed_at - job.created_at if job.claimed_at else None
    head = facts(
        [
            ("job", str(job.id)),
            ("state", state_text(job.state)),
            ("task", clean(job.task)),
            ("queue", clean(job.queue)),
            ("priority", job.priority or None),
            ("tenant", clean(job.tenant or "")),
            ("workflow", _workflow(view)),
            ("step", _step(view)),
            ("attempt", f"{job.attempt}; {job.failures} failed of {job.max_attempts} allowed"),
            ("worker deaths", job.crashes or None),
            ("deferred", f"{job.deferrals} times" if job.deferrals else None),
            ("created", moment(job.created_at, now)),
            ("due", moment(job.run_at, now) if not ended else None),
            ("expires", moment(job.expires_at, now) if not job.attempt else None),
            ("claimed", moment(job.claimed_at, now)),
            ("heartbeat", moment(job.heartbeat_at, now) if not ended else None),
            ("lease until", moment(job.lease_expires_at, now)),
            ("hard limit", moment(job.hard_deadline, now)),
            ("cancel requested", moment(job.cancel_requested_at, now)),
            ("ended", moment(ended, now)),
            ("waited", age(waited)),
            ("took", age(took)),
            ("acknowledged", moment(job.acknowledged_at, now)),
            ("worker", clean(job.worker or "")),
            ("reason", clean(job.reason or "")),
            ("unique key", clean(job.unique_key or "")),
            ("correlation", clean(job.correlation_id or "")),
            ("retry of", job.retry_of),
            ("tags", clean(", ".join(job.tags))),
            ("error group", clean(job.error_group or "")),
        ]
    )
    parts: list[RenderableType] = [head]
    if job.state is JobState.RUNNING and job.progress is not None:
        parts.append(_progress(job, out))
    elif job.state is JobState.RUNNING and (job.phase or job.message):
        parts.append(Text(clean(" ".join(filter(None, (job.phase, job.message))))))
    for name, body in (("payload", job.payload), ("result", job.result)):
        if name == "result" and view.stored is not None:
            parts += [Text(name, style="bold"), Text(_in_store(view.stored))]
        elif body is not None and body != {}:
            parts += [Text(f"{name}", style="bold"), Text(_indented(body))]
    if steps:
        parts += [Text("steps", style="bold"), table(_steps(steps, now), steps, out.width)]
    if usage:
        parts += [Text("used", style="bold"), table(_account(), usage, out.width)]
    if job.errors:
        parts.append(Text("errors, newest last", style="bold"))
        parts += [_error(error) for error in job.errors]
    elif job.last_error:
        parts += [Text("last error", style="bold"), Text("  " + shown_error(job.last_error))]
    return Group(*parts)


def _in_store(stored: Artifact) -> str:
    if stored.deleted_at is not None:
        reason = clean(stored.delete_reason or "")
        return f"  was in the store, {size(stored.bytes)}; deleted: {reason}"
    return f"  in the store, {size(stored.bytes)}; trunkline artifacts get {stored.id}"


def _workflow(view: _View) -> str | None:
    if view.workflow is None:
        return None
    return f"{clean(view.workflow.name)} {view.workflow.id}"


def _step(view: _View) -> str | None:
    if view.step is None:
        return None
    item = view.job.workflow_item
    return clean(view.step) + ("" if item is None else f"[{item}]")


def _steps(steps: Sequence[JobStep], now: datetime) -> list[Column[JobStep]]:
    """Return the columns of recorded steps and of what the job waits for."""
    in_store: Column[JobStep] = Column(
        "IN THE STORE", lambda row: "" if row.bytes is None else size(row.bytes), right=True
    )
    return [
        Column("STEP", lambda row: row.name, elastic=True),
        Column("KIND", lambda row: row.kind, rank=1),
        Column("KEY", lambda row: row.key),
        Column("STATE", lambda row: row.state, lambda row: "" if row.recorded_at else "yellow"),
        Column("ATTEMPT", lambda row: row.attempt, right=True, rank=2),
        Column("AT", lambda row: moment(row.recorded_at, now) or _until(row, now)),
        *([in_store] if any(step.bytes is not None for step in steps) else []),
    ]


def _until(step: JobStep, now: datetime) -> str:
    return f"until {moment(step.until, now)}" if step.until else ""


def _account() -> list[Column[JobUsage]]:
    """Return the columns of the usage ledger by attempt, with the name of each bucket."""
    attempt: Column[JobUsage] = Column("ATTEMPT", lambda row: row.attempt, right=True)
    name: Column[JobUsage] = Column("LIMIT", lambda row: row.name, elastic=True)
    return [attempt, name, *usage_columns("limit")[1:]]


def _progress(job: Job, out: Console) -> RenderableType:
    line = Table.grid(padding=(0, 1))
    width = max(10, min(40, out.width - 20))
    percent = job.progress or 0
    words = clean(" ".join(filter(None, (job.phase, job.message))))
    line.add_row(
        Text("progress", style="bold"),
        ProgressBar(total=100, completed=percent, width=width),
        Text(f"{percent:3d}%"),
    )
    return Group(line, Text("          " + words)) if words else line


def _error(error: Any) -> Text:
    when = str(error.get("at", ""))[:19].replace("T", " ")
    head = f"  attempt {error.get('attempt')}, {when}, {error.get('kind')}"
    if error.get("worker"):
        head += f" on {error['worker']}"
    text = Text(clean(head) + "\n    ")
    text.append(shown_error(error), style="red")
    if error.get("value") is not None:
        text.append(f"\n    value: {clean(str(error['value']))}")
    for line in str(error.get("traceback") or "").splitlines():
        text.append("\n    " + clean(line), style="dim")
    return text


def _indented(body: Any) -> str:
    lines = json.dumps(data(body), indent=2, ensure_ascii=False).splitlines()
    return "\n".join("  " + clean(line) for line in lines)
