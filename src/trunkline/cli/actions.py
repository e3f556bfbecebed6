"""Doing the same to several jobs, one transaction each, and telling what became of each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from uuid import UUID

import click

from trunkline.cli.output import clean, data, print_json
from trunkline.errors import DatabaseProblem, DatabaseUnreachable, TrunklineError

__all__ = ["confirm", "each"]

T = TypeVar("T")


def each(
    job_ids: Sequence[UUID],
    action: Callable[[UUID], T],
    told: Callable[[T], str],
    *,
    as_json: bool,
) -> int:
    """Do it to each and go on after a refusal; the exit code is 1 if there was one."""
    if len(job_ids) == 1:
        # Alone it may fail with all that is to be said about it.
        answer = action(job_ids[0])
        print_json([answer]) if as_json else click.echo(told(answer))
        return 0
    answers: list[Any] = []
    refused = 0
    try:
        for job_id in job_ids:
            try:
                answer = action(job_id)
            except (DatabaseProblem, DatabaseUnreachable):
                raise
            except TrunklineError as error:
                refused += 1
                fault = {"code": error.code, "message": str(error), "hint": error.hint}
                answers.append({"job_id": job_id, "error": fault})
                if not as_json:
                    click.echo(
                        f"{job_id}  {click.style('refused', fg='red')}: {clean(error)}", err=True
                    )
            else:
                answers.append(data(answer))
                if not as_json:
                    click.echo(told(answer))
    finally:
        # Also when the server went away in the middle: what was done must be known.
        if as_json:
            print_json(answers)
    if refused and not as_json:
        click.echo(f"{refused} of {len(job_ids)} were refused", err=True)
    return 1 if refused else 0


def confirm(question: str, *, yes: bool) -> None:
    """Ask, unless told not to; where nobody can answer it takes --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"{question} Nobody is there to answer; add --yes to do it.")
    click.confirm(question, abort=True, err=True)
