"""Ours, with the commands that users type."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version

from bench.internals.tables import FORGET
from bench.place import Place
from bench.rivals.product import PostgresContender, Product

__all__ = ["PRODUCT", "open_trunkline"]

# Has no effect with no-op handlers: the drain rate is the same from 10 to 500.
_CONCURRENCY = 100


class _Trunkline(PostgresContender):
    def workers(self, processes: int) -> Sequence[Sequence[str]]:
        """One command: a supervisor and its processes."""
        return [[*self.worker, "--processes", str(processes)]] if processes > 1 else [self.worker]


@contextmanager
def open_trunkline(
    place: Place, *, key: str = "trunkline", variables: Mapping[str, str] | None = None
) -> Iterator[PostgresContender]:
    """Our worker as users start it, our client on the loop that ``trunkline[uvloop]`` installs."""
    program = [sys.executable, "-m", "trunkline"]
    with (
        place.database(key) as dsn,
        _Trunkline(
            key=key,
            name="Trunkline",
            dsn=dsn,
            worker=[*program, "worker", "bench.apps.noop:app", "--concurrency", str(_CONCURRENCY)],
            producer=[sys.executable, "-m", "bench.apps.producer"],
            environment={"TRUNKLINE_DSN": dsn, **place.python_path, **(variables or {})},
            is_empty="""
            select not exists (
              select from trunkline.queues as q where q.ready + q.scheduled + q.running > 0
            )
            """,
            ended="""
            select count(*) filter (where j.state = 'completed' and j.attempt = 1),
              count(distinct j.job_id)
            from trunkline.jobs as j
            where j.state in ('completed', 'cancelled')
            """,
            forget=FORGET,
        ) as contender,
    ):
        yield contender


def _versions() -> dict[str, str]:
    return {package: version(package) for package in ("trunkline", "psycopg", "uvloop")}


def _prepare() -> None:
    """Nothing to install: the bench's environment contains it."""


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
