"""Changes of many jobs: those with certain ids, or all that match a filter, batch by batch."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final, Self, TypeVar
from uuid import UUID

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from trunkline.cli import job_options, options
from trunkline.cli.actions import confirm, each
from trunkline.cli.command_line import continued
from trunkline.cli.connection import Session, opened
from trunkline.cli.job_lists import short_list
from trunkline.cli.output import clean, count, data, job_data, print_json
from trunkline.errors import TrunklineError
from trunkline.model import (
    BulkAction,
    BulkPreview,
    BulkProgress,
    JobFilter,
    PacedReplay,
    StateCount,
)
from trunkline.operate import SyncOperator

__all__ = ["Chosen", "Step", "Verb", "carry_out", "choices"]

Command = TypeVar("Command", bound=Callable[..., Any])
Step = BulkProgress | PacedReplay

_INTERRUPTED: Final = 130
# What became of jobs, changed ones first; all other outcomes are refusals by their names.
_OUTCOMES: Final = {
    "acknowledged": "acknowledged",
    "cancelled": "cancelled",
    "discarded": "discarded",
    "replayed": "replayed",
    "reprioritised": "reprioritised",
    "requested": "asked to stop",
    "retried": "copied and run again",
    "ended": "ended meanwhile",
    "gone": "gone meanwhile",
    "started": "started meanwhile",
    "unchanged": "unchanged",
}
_ORDER: Final = {name: place for place, name in enumerate(_OUTCOMES)}
_STOPPING: Final = b"\nStopping after this batch. Press Ctrl-C again to interrupt it.\n"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The jobs and the options of a change, as the command line has them."""

    ctx: click.Context
    job_ids: tuple[str, ...]
    fields: Mapping[str, Any]
    everything: bool
    dry_run: bool
    yes: bool
    cursor: str | None
    reason: str | None
    dsn: str | None
    as_json: bool

    @classmethod
    def of(cls, ctx: click.Context, values: Mapping[str, Any]) -> Self:
        """Return the choice from the parameters of a command."""
        fields = {name: value for name, value in values.items() if name in job_options.FILTER}
        own = {name: value for name, value in values.items() if name not in fields}
        return cls(ctx=ctx, fields=fields, **own)


@dataclass(frozen=True, slots=True)
class Verb:
    """A change of a job by its id, and of all jobs that match a filter."""

    action: BulkAction
    name: str
    past: str
    one: Callable[[SyncOperator, UUID, str | None], Any]
    message: Callable[[Any], str]
    many: Callable[[SyncOperator, JobFilter, Chosen], Iterator[Step]]
    noun: str = "job"
    # States that the filter is restricted to, whatever it says.
    state: str | None = None
    # Jobs that are named by their ids also need a confirmation.
    asks_for_ids: bool = False


def choices(
    job_filter: Callable[[Command], Command], *more: Callable[[Command], Command]
) -> Callable[[Command], Command]:
    """Add the options of a bulk change: ids, a filter, and how to go about it."""
    return options.with_options(
        job_options.job_ids,
        job_filter,
        click.option("--all", "everything", is_flag=True, help="Allow an empty filter."),
        *more,
        click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing."),
        options.yes,
        job_options.cursor,
        options.reason,
        options.dsn,
        options.as_json,
    )


def carry_out(ctx: click.Context, values: Mapping[str, Any], verb: Verb) -> None:
    """Change the chosen jobs, or show which these are, and exit with the code for it."""
    chosen = Chosen.of(ctx, values)
    _check(chosen, verb)
    with opened(chosen.dsn) as session:
        operator = session.operator
        if chosen.job_ids and not chosen.dry_run:
            if verb.asks_for_ids:
                confirm(_question(verb, count(len(chosen.job_ids), verb.noun)), yes=chosen.yes)
            ctx.exit(
                each(
                    chosen.job_ids,
                    lambda job: verb.one(operator, operator.jobs.resolve(job), chosen.reason),
                    verb.message,
                    as_json=chosen.as_json,
                )
            )
        job_filter = _filter(operator, chosen, verb)
        preview = operator.jobs.preview(verb.action, job_filter)
        if chosen.dry_run:
            _show_preview(session, chosen, verb, preview)
        elif not preview.sample:
            _finish(chosen, verb, None)
            if not chosen.as_json:
                click.echo(f"No {verb.noun} matches the filter.", err=True)
        else:
            confirm(_question(verb, _counted(verb, preview.counts)), yes=chosen.yes)
            ctx.exit(_in_batches(operator, chosen, verb, job_filter, preview.counts))


def _check(chosen: Chosen, verb: Verb) -> None:
    filtered = chosen.everything or any(value not in (None, ()) for value in chosen.fields.values())
    if bool(chosen.job_ids) == filtered:
        raise click.UsageError(
            f"Name {verb.noun}s by their ids, or by a filter such as --task, but not by both."
        )
    if chosen.job_ids and chosen.cursor:
        raise click.UsageError("--cursor continues a change by a filter; ids need none.")
    if filtered and not chosen.everything and not job_options.names_jobs(chosen.fields):
        raise click.UsageError(
            f"--state alone matches every {verb.noun} in it. Add another filter, or pass --all if "
            "you mean all of them."
        )


def _filter(operator: SyncOperator, chosen: Chosen, verb: Verb) -> JobFilter:
    if chosen.job_ids:
        return JobFilter(
            state=verb.state, job_ids=[operator.jobs.resolve(job) for job in chosen.job_ids]
        )
    state = {} if verb.state is None else {"state": verb.state}
    return job_options.read_filter(operator, {**chosen.fields, **state})


def _question(verb: Verb, jobs: str) -> str:
    return f"{verb.name.capitalize()} {jobs}?"


def _counted(verb: Verb, counts: list[StateCount]) -> str:
    more = "+" if any(row.more for row in counts) else ""
    jobs = sum(row.jobs for row in counts)
    states = [f"{row.jobs:,}{'+' if row.more else ''} {row.state}" for row in counts if row.jobs]
    text = f"{jobs:,}{more} {verb.noun}" + ("" if jobs == 1 and not more else "s")
    return text if verb.state else f"{text} ({', '.join(states)})"


def _show_preview(session: Session, chosen: Chosen, verb: Verb, preview: BulkPreview) -> None:
    if chosen.as_json:
        sample = [job_data(job, bodies=False) for job in preview.sample]
        print_json(
            {"action": verb.name, "dry_run": True, "counts": preview.counts, "sample": sample}
        )
        return
    if not preview.sample:
        click.echo(f"No {verb.noun} matches the filter.", err=True)
        return
    counted = _counted(verb, preview.counts)
    click.echo(f"{counted} would be {verb.past}. The newest:")
    short_list(preview.sample, session.operator.now())


def _in_batches(
    operator: SyncOperator,
    chosen: Chosen,
    verb: Verb,
    job_filter: JobFilter,
    counts: list[StateCount],
) -> int:
    step: Step | None = None
    interrupted = False
    try:
        with (
            _held_interrupt(quiet=chosen.as_json) as pressed,
            _meter(chosen, verb, counts) as show,
        ):
            for step in verb.many(operator, job_filter, chosen):
                show(step)
                if pressed() and step.cursor is not None:
                    interrupted = True
                    break
    except KeyboardInterrupt:
        interrupted = True
    except TrunklineError:
        # The batch that failed changed nothing, or its answer was lost: it may be repeated.
        _finish(chosen, verb, step)
        _name_continuation(chosen, step, "Not finished.")
        raise
    _finish(chosen, verb, step, interrupted=interrupted)
    if interrupted:
        _name_continuation(chosen, step, "Interrupted.")
        return _INTERRUPTED
    if isinstance(step, PacedReplay) and step.stopped:
        share = f"{step.failed:,} of {step.replayed:,} replayed dead letters failed again"
        where = f" Continue with: {continued(chosen.ctx, step.cursor)}" if step.cursor else ""
        raise click.ClickException(
            f"The replay stopped, because {share}. Fix the cause first: trunkline dead groups."
            f"{where}"
        )
    if isinstance(step, PacedReplay) and _failed_too_often(chosen, step):
        least = chosen.ctx.params["at_least"]
        click.echo(
            "Too many failed again. That stops a replay only from --at-least on, which is "
            f"{least:,}. Fix the cause first: trunkline dead groups.",
            err=True,
        )
        return 1
    outcomes = step.outcomes if step else {}
    return 1 if any(number and name not in _OUTCOMES for name, number in outcomes.items()) else 0


def _failed_too_often(chosen: Chosen, step: PacedReplay) -> bool:
    """Whether a replay of too few dead letters to stop it has the share of --stop-at."""
    stop_at = chosen.ctx.params["stop_at"]
    return stop_at is not None and step.failed > stop_at * step.replayed


@contextmanager
def _held_interrupt(*, quiet: bool) -> Iterator[Callable[[], bool]]:
    """Let the batch that runs end after Ctrl-C; a second Ctrl-C interrupts it."""
    presses = 0

    def note(_number: int, _frame: FrameType | None) -> None:
        nonlocal presses
        presses += 1
        if presses > 1:
            raise KeyboardInterrupt
        if not quiet:
            # Not through sys.stderr, which the signal may have interrupted in a write.
            os.write(2, _STOPPING)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: presses > 0
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _meter(
    chosen: Chosen, verb: Verb, counts: list[StateCount]
) -> Iterator[Callable[[Step], None]]:
    """Show progress on standard error if that is a terminal."""
    screen = Console(stderr=True, highlight=False, markup=False)
    if chosen.as_json or not screen.is_terminal:
        yield lambda _step: None
        return
    jobs = sum(row.jobs for row in counts)
    # Jobs are counted up to a bound; beyond it the bar only shows that something happens.
    total = None if any(row.more for row in counts) else jobs
    with Progress(
        BarColumn(bar_width=24),
        TextColumn("{task.fields[note]}", markup=False),
        TimeElapsedColumn(),
        console=screen,
        transient=True,
    ) as progress:
        bar = progress.add_task("", total=total, note=f"0 of {_counted(verb, counts)}")

        def show(step: Step) -> None:
            progress.update(bar, completed=_jobs(step), note=_sentence(verb, step))

        yield show


def _jobs(step: Step) -> int:
    return sum(step.outcomes.values())


def _sentence(verb: Verb, step: Step) -> str:
    parts: list[str] = []
    for name in sorted(step.outcomes, key=lambda name: (_ORDER.get(name, len(_ORDER)), name)):
        if number := step.outcomes[name]:
            jobs = f"{number:,}" if parts else count(number, verb.noun)
            parts.append(f"{jobs} {_OUTCOMES.get(name, f'refused ({clean(name)})')}")
    text = ", ".join(parts) or f"No {verb.noun} {verb.past}"
    if isinstance(step, PacedReplay):
        text += f"; {step.completed:,} completed, {step.failed:,} failed again"
    return text


def _finish(chosen: Chosen, verb: Verb, step: Step | None, *, interrupted: bool = False) -> None:
    if not chosen.as_json:
        if step is not None:
            click.echo(f"{_sentence(verb, step)}.")
        return
    document: dict[str, Any] = {
        "action": verb.name,
        "jobs": 0 if step is None else _jobs(step),
        "outcomes": {} if step is None else dict(step.outcomes),
        "cursor": chosen.cursor if step is None else step.cursor,
        "interrupted": interrupted,
    }
    if isinstance(step, PacedReplay):
        document |= {"completed": step.completed, "failed": step.failed, "stopped": step.stopped}
    print_json(data(document))


def _name_continuation(chosen: Chosen, step: Step | None, message: str) -> None:
    cursor = chosen.cursor if step is None else step.cursor
    if chosen.as_json:
        return
    if cursor is None:
        # The first batch may have ended although its answer was lost.
        click.echo(f"{message} Run the same command again to continue.", err=True)
    else:
        click.echo(f"{message} Continue with: {continued(chosen.ctx, cursor)}", err=True)
