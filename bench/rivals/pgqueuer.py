"""PgQueuer: batch claims, batch moves to a log table, LISTEN."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from bench.place import Place
from bench.rivals.environment import Environment
from bench.rivals.product import ROOT, PostgresContender, Product, libpq_variables

__all__ = ["ENVIRONMENT", "PLAIN", "PRODUCT", "TUNED", "Settings", "open_pgqueuer", "versions"]

ENVIRONMENT = Environment("pgqueuer", ["pgqueuer==1.6.0", "asyncpg==0.32.0", "uvloop==0.23.0"])


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of its worker."""

    key: str
    name: str
    batch: int
    driver: str


# First the settings of the baseline figures, then the fastest that we found. For short jobs, its
# guide recommends one connection per worker and larger batches, and elsewhere a pool.
PLAIN = Settings("pgqueuer", "PgQueuer, batch 100", 100, "connection")
TUNED = Settings("pgqueuer_tuned", "PgQueuer, pool, batch 500", 500, "pool")
_BEST = Settings("pgqueuer", "PgQueuer", TUNED.batch, TUNED.driver)


@contextmanager
def open_pgqueuer(place: Place, settings: Sequence[Settings]) -> Iterator[list[PostgresContender]]:
    """Open one database for all its settings, of which only one works at a time."""
    python = str(ENVIRONMENT.python)
    producer = [python, "-m", "bench.rivals.pgqueuer_producer"]
    with place.empty_database("pgqueuer") as dsn, ExitStack() as stack:
        subprocess.run([*producer, "install"], check=True, cwd=ROOT, env=libpq_variables(dsn))
        yield [
            stack.enter_context(
                PostgresContender(
                    key=each.key,
                    name=each.name,
                    dsn=dsn,
                    worker=[
                        *(python, "-m", "bench.rivals.pgqueuer_worker"),
                        *(str(each.batch), each.driver),
                    ],
                    producer=producer,
                    is_empty="select not exists (select from pgqueuer)",
                    ended="""
                    select count(*) filter (where status = 'successful'),
                      count(distinct job_id) filter (where status = 'successful')
                    from pgqueuer_log
                    """,
                    forget="truncate pgqueuer, pgqueuer_log",
                )
            )
            for each in settings
        ]


@contextmanager
def _open(place: Place) -> Iterator[PostgresContender]:
    with open_pgqueuer(place, [_BEST]) as (contender,):
        yield contender


def versions() -> dict[str, str]:
    """Return the versions in its environment."""
    return ENVIRONMENT.versions("pgqueuer", "asyncpg", "uvloop")


PRODUCT = Product(
    key="pgqueuer",
    name="PgQueuer",
    language="Python",
    settings="asyncpg pool of 5 to 20, batches of 500, uvloop, durable tables with its own "
    "autovacuum settings; producer: ten connections; bulk: `enqueue` with lists",
    prepare=ENVIRONMENT.make,
    versions=versions,
    open=_open,
    pace=10_000,
)
