"""One workflow in full, and the columns of lists of workflows and steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from rich.console import Console, Group, RenderableType
from rich.text import Text

from trunkline.cli.connection import Session
from trunkline.cli.gauges import bar
from trunkline.cli.output import age, clean, moment, print_json
from trunkline.cli.tables import Column, console, facts, live, put, table
from trunkline.model import FailedItem, StepStatus, WorkflowState, WorkflowStatus
from trunkline.operate import SyncOperator

__all__ = ["columns", "document", "dot", "mermaid", "show_one"]

_STYLES: Final = {
    "queued": "cyan",
    "running": "yellow",
    "open": "yellow",
    "completed": "green",
    "failed": "red bold",
    "cancelled": "bright_black",
    "blocked": "magenta",
}
# Characters of an id that a narrow terminal shows.
_SHORT_ID: Final = 18
_MOST_FAILED: Final = 5
_BAR: Final = 30


def document(status: WorkflowStatus) -> dict[str, Any]:
    """Return what JSON shows of a workflow, under the engine's names."""
    values = _fields(status)
    values = {"workflow_id": values.pop("id"), **values}
    # Lists have neither.
    steps, params = values.pop("steps"), values.pop("params")
    if not steps:
        return values
    return {**values, "params": params, "steps": [_fields(step) for step in steps]}


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def columns(now: datetime, out: Console) -> Sequence[Column[WorkflowStatus]]:
    """Return the columns of a list of workflows."""
    plain = out.options.ascii_only

    def progress(row: WorkflowStatus) -> Text:
        percent = row.progress.percent if row.progress else 0
        text = Text(f"{percent:3d}%")
        if out.is_terminal:
            return Text(" ").join([_filled(percent, 10, plain=plain), text])
        return text

    return [
        Column("WORKFLOW", lambda row: row.id, short=_SHORT_ID),
        Column("NAME", lambda row: row.name, elastic=True),
        Column("STATE", lambda row: row.state, lambda row: _STYLES[row.state]),
        Column("PROGRESS", progress),
        Column("JOBS", lambda row: f"{row.completed:,}/{row.jobs:,}", right=True, rank=1),
        Column("FAILED", lambda row: row.failed or "", "red", right=True, rank=2),
        Column("LEFT", _left, right=True, rank=3),
        Column("WHEN", lambda row: _when(row, now), rank=1),
        Column("TENANT", lambda row: row.tenant or "", rank=4),
    ]


def show_one(session: Session, workflow: UUID, *, watch: bool, as_json: bool) -> None:
    """Show one workflow with its steps; with `watch`, until it has ended."""
    if not watch:
        view = _read(session.operator, workflow)
        if as_json:
            print_json(view.document())
        else:
            out = console()
            put(out, _detail(view, out))
        return
    live(
        lambda: _read(session.watcher, workflow),
        _detail,
        as_json=as_json,
        ended=lambda view: view.status.state.final,
        document=lambda view: view.document(),
    )


class _View(NamedTuple):
    status: WorkflowStatus
    failed: Sequence[FailedItem]
    now: datetime

    def document(self) -> dict[str, Any]:
        return {**document(self.status), "failed_jobs": [_fields(item) for item in self.failed]}


def _read(operator: SyncOperator, workflow: UUID) -> _View:
    status = operator.workflows.get(workflow)
    failed = operator.workflows.failed(workflow) if status.failed else []
    return _View(status, failed, operator.now())


def _detail(view: _View, out: Console) -> RenderableType:
    status, failed, now = view
    took = status.ended_at - status.created_at if status.ended_at else None
    head = facts(
        [
            ("workflow", str(status.id)),
            ("name", clean(status.name)),
            ("kind", status.kind if status.kind != "workflow" else None),
            ("state", Text(status.state, style=_STYLES[status.state])),
            ("progress", _progress(status, out)),
            ("tenant", clean(status.tenant or "")),
            ("generation", status.generation if status.generation > 1 else None),
            ("started", moment(status.created_at, now)),
            ("deadline", moment(status.deadline, now) if not took else None),
            ("cancel requested", moment(status.cancel_requested_at, now)),
            ("ended", moment(status.ended_at, now)),
            ("took", age(took)),
            ("reason", clean(status.reason or "")),
            ("unique key", clean(status.unique_key or "")),
            ("correlation", clean(status.correlation_id or "")),
            ("tags", clean(", ".join(status.tags))),
            ("rerun of", status.rerun_of),
            ("parent job", status.parent_job),
        ]
    )
    parts: list[RenderableType] = [head, Text(), table(_step_columns(), status.steps, out.width)]
    if failed:
        parts += [Text(), Text("failed", style="bold")]
        parts += [_failed(item) for item in failed[:_MOST_FAILED]]
        if status.failed > _MOST_FAILED:
            parts.append(Text(f"  and {status.failed - _MOST_FAILED:,} more"))
    return Group(*parts)


def _progress(status: WorkflowStatus, out: Console) -> Text:
    progress = status.progress
    if progress is None:
        return Text()
    text = _filled(progress.percent, _BAR, plain=out.options.ascii_only)
    words = [f" {progress.percent}%"]
    if status.state is WorkflowState.RUNNING:
        words += [word for word in (progress.phase, clean(progress.message or "")) if word]
        words += [f"about {left} left" if (left := _left(status)) else ""]
    return text + Text(", ".join(word for word in words if word))


def _filled(percent: int, width: int, *, plain: bool) -> Text:
    # A full bar of work is good, unlike that of a limit: always green.
    return Text(bar(percent / 100, width, plain=plain).plain, style="green")


def _left(status: WorkflowStatus) -> str:
    if status.state.final or status.progress is None or status.progress.remaining is None:
        return ""
    return age(timedelta(seconds=status.progress.remaining))


def _when(row: WorkflowStatus, now: datetime) -> str:
    if row.ended_at is not None:
        return f"took {age(row.ended_at - row.created_at)}"
    return f"for {age(now - row.created_at)}"


def _step_columns() -> list[Column[StepStatus]]:
    def jobs(step: StepStatus) -> str:
        return f"{step.completed:,}/{'?' if step.items is None else f'{step.items:,}'}"

    def failed(step: StepStatus) -> int | str:
        # Of a cancelled step, the state says it all.
        return "" if step.state == "cancelled" else step.not_completed or ""

    return [
        Column("STEP", lambda step: step.name, elastic=True, least=10),
        Column("STATE", lambda step: step.state, lambda step: _STYLES[step.state]),
        Column("JOBS", jobs, right=True),
        Column("FAILED", failed, "red", right=True, rank=1),
        Column("TASK", lambda step: step.task, rank=4, elastic=True),
        Column("AFTER", lambda step: ", ".join(step.after), rank=2, elastic=True),
        Column("PHASE", lambda step: step.phase or "", rank=5),
        Column("WHY", lambda step: step.reason or "", rank=3, elastic=True),
    ]


def _failed(item: FailedItem) -> Text:
    place = "" if item.item is None else f"[{item.item}]"
    line = f"  {clean(item.step)}{place}  {item.job or ''}  "
    return Text(line) + Text(clean(item.reason or ""), style="red")


def mermaid(status: WorkflowStatus) -> str:
    """Return the graph as a Mermaid diagram; nodes are numbered, because names are free text."""
    places = {step.name: f"s{place}" for place, step in enumerate(status.steps)}
    lines = ["flowchart TD"]
    for step in status.steps:
        lines.append(f'  {places[step.name]}["{_label(step).replace(chr(34), "#quot;")}"]')
        lines += [f"  {places[other]} --> {places[step.name]}" for other in step.after]
    return "\n".join(lines)


def dot(status: WorkflowStatus) -> str:
    """Return the graph in the language of Graphviz."""
    places = {step.name: f"s{place}" for place, step in enumerate(status.steps)}
    lines = ["digraph {", "  node [shape=box]"]
    for step in status.steps:
        label = _label(step).replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'  {places[step.name]} [label="{label}"]')
        lines += [f"  {places[other]} -> {places[step.name]}" for other in step.after]
    return "\n".join([*lines, "}"])


def _label(step: StepStatus) -> str:
    many = "" if step.kind == "job" else f" x {'?' if step.items is None else step.items}"
    return clean(f"{step.name}{many}: {step.state}")
