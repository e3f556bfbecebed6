"""Ours, with the commands that users type."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from bench.place import Place
from bench.rivals.product import PostgresContender, Product

__all__ = ["PRODUCT", "open_trunkline"]

# Makes no difference to handlers that do nothing: from 10 to 500 the drain is the same.
_CONCURRENCY = 100


class _Trunkline(PostgresContender):
    def workers(self, processes: int) -> Sequence[Sequence[str]]:
        """One command: a supervisor and so many processes under it."""
        return [[*self.worker, "--processes", str(processes)]] if processes > 1 else [self.worker]


@contextmanager
def open_trunkline(
    place: Place, *, key: str = "trunkline", variables: Mapping[str, str] | None = None
) -> Iterator[PostgresContender]:
    """Our worker as users start it, our client on the loop that ``trunkline[uvloop]`` installs."""
    program = str(Path(sys.executable).parent / "trunkline")
    with (
        place.database(key) as dsn,
        _Trunkline(
            key=key,
            name="Trunkline",
            dsn=dsn,
            worker=[program, "worker", "bench.apps.noop:app", "--concurrency", str(_CONCURRENCY)],
            producer=[sys.executable, "-m", "bench.apps.producer"],
            environment={"TRUNKLINE_DSN": dsn, **(variables or {})},
            is_empty="""
            select not exists (select from trunkline_internal.waiting)
              and not exists (select from trunkline_internal.running)
            """,
            ended="""
            select count(*) filter (where state = 'completed' and attempt = 1),
              count(distinct job_id)
            from trunkline_internal.finished
            """,
            forget="""
            truncate trunkline_internal.waiting, trunkline_internal.running,
              trunkline_internal.finished
            """,
        ) as contender,
    ):
        yield contender


def _versions() -> dict[str, str]:
    return {package: version(package) for package in ("trunkline", "psycopg", "uvloop")}


def _prepare() -> None:
    """It is what the bench itself is installed with."""


PRODUCT = Product(
    key="trunkline",
    name="Trunkline",
    language="Python",
    settings=f"`trunkline worker --concurrency {_CONCURRENCY}`, one command with `--processes 2` "
    "for two; uvloop; the client's own pool of 10; bulk: `enqueue_many`",
    prepare=_prepare,
    versions=_versions,
    open=open_trunkline,
    pace=40_000,
)
