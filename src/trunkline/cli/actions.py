"""Changes: one, or the same change of several jobs by their ids."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from trunkline.cli.connection import opened
from trunkline.cli.output import clean, count, data, print_json
from trunkline.errors import DatabaseProblem, DatabaseUnreachable, TrunklineError
from trunkline.operate import SyncOperator

__all__ = ["change", "confirm", "each"]

T = TypeVar("T")


def change(
    action: Callable[[SyncOperator], T],
    message: Callable[[T], str],
    document: Callable[[T], Any],
    *,
    dsn: str | None,
    as_json: bool,
) -> None:
    """Carry out one change and print what came of it: a sentence, or the document as JSON."""
    with opened(dsn) as session:
        answer = action(session.operator)
    if as_json:
        print_json(document(answer))
    else:
        click.echo(message(answer))


def each(
    job_ids: Sequence[str],
    action: Callable[[str], T],
    message: Callable[[T], str],
    *,
    as_json: bool,
) -> int:
    """Change jobs one after another, and go on after a refusal; return the exit code.

    A single job that is refused raises its error, which has a hint.
    """
    if len(job_ids) == 1:
        answer = action(job_ids[0])
        print_json([answer]) if as_json else click.echo(message(answer))
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
                    click.echo(message(answer))
    finally:
        # Also if the server was lost in the middle: the user must know what was done.
        if as_json:
            print_json(answers)
    if refused and not as_json:
        click.echo(f"{refused} of {count(len(job_ids), 'job')} refused.", err=True)
    return 1 if refused else 0


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation, unless --yes was passed; refuse if standard input is no terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(
            f"{question} Standard input is not a terminal, so nobody can confirm. Pass --yes."
        )
    if not click.confirm(question, err=True):
        click.echo("Nothing was changed.", err=True)
        # The same code as Ctrl-C at the question.
        raise click.exceptions.Exit(130)
