"""Options that choose jobs: ids, filters, and where a list or a bulk change continues."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from trunkline.cli.options import DURATION, STATES, TIME, with_options
from trunkline.errors import InvalidArgument
from trunkline.model import JobFilter
from trunkline.operate import SyncOperator
from trunkline.operate.job_ids import id_or_prefix

__all__ = [
    "FILTER",
    "JOB_ID",
    "PAST",
    "RATE",
    "SHARE",
    "cursor",
    "dead_filter",
    "job_filter",
    "job_id",
    "job_ids",
    "limit",
    "names_jobs",
    "read_filter",
]

Command = TypeVar("Command", bound=Callable[..., Any])

# Generic only in newer releases of click.
if TYPE_CHECKING:
    _Kind = click.ParamType[Any]
else:
    _Kind = click.ParamType

_PER: Final = {"s": 1, "m": 60, "h": 3600}


class _JobId(_Kind):
    """A job id, or the start of one."""

    name = "job id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            id_or_prefix(value)
        except InvalidArgument:
            self.fail(
                f"{value!r} is neither a job id nor the first 8 or more digits of one", param, ctx
            )
        return str(value)


class _Past(_Kind):
    """A point in time, or an age."""

    name = "time or age"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        if "-" in str(value):
            return TIME.convert(value, param, ctx)
        try:
            return datetime.now(UTC) - timedelta(seconds=DURATION.convert(value, param, ctx))
        except OverflowError:
            self.fail(f"{value!r} is too long ago", param, ctx)


class _Rate(_Kind):
    """A rate as people write it, per second."""

    name = "rate"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)/([smh])", str(value).strip())
        if match is None or not float(match[1]):
            self.fail(f"{value!r} is not a rate: write 5/s, 30/m or 1000/h", param, ctx)
        return float(match[1]) / _PER[match[2]]


class _Share(_Kind):
    """A percentage, as a number from 0 to 1."""

    name = "percentage"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", str(value).strip())
        if match is None or float(match[1]) > 100:
            self.fail(f"{value!r} is not a percentage: write 10%", param, ctx)
        return float(match[1]) / 100


JOB_ID: Final = _JobId()
PAST: Final = _Past()
RATE: Final = _Rate()
SHARE: Final = _Share()

job_id = click.argument("job_id", metavar="ID", type=JOB_ID)
job_ids = click.argument("job_ids", metavar="[ID]...", nargs=-1, type=JOB_ID)
limit = click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    default=20,
    show_default=True,
    help="Show at most this many.",
)
cursor = click.option("--cursor", metavar="TEXT", help="Continue where an earlier call ended.")

# The names of the parameters are fields of JobFilter.
_FIELDS: Final = (
    click.option("--task", metavar="NAME", help="Only this task."),
    click.option("--queue", metavar="NAME", help="Only this queue."),
    click.option("--tenant", metavar="NAME", help="Only this tenant."),
    click.option("--tag", metavar="TEXT", help="Only with this tag."),
    click.option("--correlation-id", metavar="TEXT", help="Only with this correlation id."),
    click.option("--unique-key", metavar="KEY", help="Only with this unique key."),
    click.option("--error", metavar="TEXT", help="Only with this text in the last error."),
    click.option(
        "--created-after",
        "created_from",
        metavar="TIME",
        type=PAST,
        help="Enqueued at or after a time or an age, 2h.",
    ),
    click.option(
        "--created-before", metavar="TIME", type=PAST, help="Enqueued before a time or an age."
    ),
    click.option(
        "--finished-after",
        "finished_from",
        metavar="TIME",
        type=PAST,
        help="Ended at or after a time or an age.",
    ),
    click.option(
        "--finished-before", metavar="TIME", type=PAST, help="Ended before a time or an age."
    ),
)
_STATE: Final = click.option(
    "--state",
    multiple=True,
    type=click.Choice(STATES),
    help="Only this state. May be repeated.",
)
_GROUP: Final = click.option(
    "--group", "error_group", metavar="GROUP", help="Only this error group, see `dead groups`."
)
_ACKNOWLEDGED: Final = click.option(
    "--acknowledged/--unacknowledged",
    default=None,
    help="Only acknowledged ones, or only the others.",
)
# Ids are arguments: they may be short, and none are passed with a filter.
FILTER: Final = frozenset(JobFilter.__dataclass_fields__) - {"job_ids"}


def job_filter(command: Command) -> Command:
    """Add the filter of jobs in any state."""
    return with_options(_STATE, *_FIELDS)(command)


def dead_filter(command: Command) -> Command:
    """Add the filter of dead letters."""
    return with_options(_GROUP, *_FIELDS, _ACKNOWLEDGED)(command)


def read_filter(operator: SyncOperator, values: Mapping[str, Any]) -> JobFilter:
    """Return the filter that the options name; the start of an error group is completed."""
    fields = _named(values)
    if "error_group" in fields:
        fields["error_group"] = operator.dead.group(fields["error_group"]).error_group
    return JobFilter(**fields)


def names_jobs(values: Mapping[str, Any]) -> bool:
    """Return whether the filter names more than states."""
    return bool(_named(values).keys() - {"state"})


def _named(values: Mapping[str, Any]) -> dict[str, Any]:
    # An empty text stays: the engine refuses it, whereas no filter would mean every job.
    return {
        name: value for name, value in values.items() if name in FILTER and value not in (None, ())
    }
