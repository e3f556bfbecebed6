"""An edited payload: from the command line or from an editor."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from trunkline.cli.output import data
from trunkline.client import Task, load
from trunkline.client.task import tasks_by_name
from trunkline.errors import TrunklineError, UnknownTask
from trunkline.model import Job

__all__ = ["edited", "handled_task"]


def handled_task(path: str, name: str) -> Task[..., Any]:
    """Return the task of an application that runs jobs of this name."""
    task = tasks_by_name(load(path).tasks).get(name)
    if task is None:
        raise UnknownTask(
            "the application has no such task",
            hint="Pass the application whose worker runs the job, or leave out --app.",
            detail={"task": name, "app": path},
        )
    return task


@contextmanager
def edited(job: Job, payload: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any] | None]:
    """Yield the new payload; None if the user did not change it in the editor.

    The file from the editor is kept if the payload is not accepted.
    """
    if payload is not None:
        yield payload
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(
            "There is no terminal for an editor. Pass the new payload as JSON, @FILE or -."
        )
    file = _edit(job)
    try:
        document = _read(file)
        yield None if document == job.payload else document
    except (TrunklineError, click.ClickException):
        click.echo(
            f"Your payload is in {file}. Change it there, then: "
            f"trunkline dead edit {job.id} @{file}",
            err=True,
        )
        raise
    file.unlink()


def _edit(job: Job) -> Path:
    # Readable for the user alone: payloads may have secrets.
    handle, name = tempfile.mkstemp(prefix=f"{job.id}-", suffix=".json")
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        json.dump(data(job.payload or {}), stream, indent=2, ensure_ascii=False)
        stream.write("\n")
    click.edit(filename=name)
    return Path(name)


def _read(file: Path) -> dict[str, Any]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise click.ClickException(f"The payload is not JSON: {error}.") from error
    if not isinstance(document, dict):
        raise click.ClickException("The payload must be a JSON object.")
    return document
