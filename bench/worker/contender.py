"""Who is compared: the commands of its processes, and the SQL by which its books are checked."""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from bench.place import Place
from bench.rivals.environment import Environment

__all__ = ["PGQUEUER", "ROOT", "Contender", "Settings", "ours", "pgqueuer"]

ROOT = Path(__file__).parents[2]

PGQUEUER = Environment("pgqueuer", ["pgqueuer==1.6.0", "asyncpg==0.32.0", "uvloop==0.23.0"])


@dataclass(frozen=True, slots=True)
class Contender:
    """One system in a database of its own. ``key`` is part of the names of its figures."""

    key: str
    name: str
    dsn: str
    worker: Sequence[str]
    producer: Sequence[str]
    environment: Mapping[str, str]
    # Whether nothing waits or runs.
    is_empty: LiteralString
    # How many ends were recorded, and of how many jobs.
    ended: LiteralString
    forget: LiteralString


@dataclass(frozen=True, slots=True)
class Settings:
    """How PgQueuer is run."""

    key: str
    name: str
    batch: int
    driver: str


@contextmanager
def ours(place: Place, concurrency: int) -> Iterator[Contender]:
    """Our worker as users start it."""
    programs = Path(sys.executable).parent
    with place.database("ours") as dsn:
        yield Contender(
            key="trunkline",
            name="trunkline",
            dsn=dsn,
            worker=[
                str(programs / "trunkline"),
                "worker",
                "bench.apps.noop:app",
                "--concurrency",
                str(concurrency),
            ],
            producer=[sys.executable, "-m", "bench.apps.producer"],
            environment={"TRUNKLINE_DSN": dsn},
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
        )


@contextmanager
def pgqueuer(place: Place, settings: Sequence[Settings]) -> Iterator[list[Contender]]:
    """PgQueuer, in one database for all its settings; never two of them work at once."""
    name = sql.Identifier(f"{place.prefix}_pgqueuer")
    with psycopg.connect(place.dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("create database {}").format(name))
    try:
        dsn = place.dsn_of("pgqueuer")
        environment = _libpq_variables(dsn)
        producer = [str(PGQUEUER.python), "-m", "bench.rivals.pgqueuer_producer"]
        subprocess.run([*producer, "install"], check=True, cwd=ROOT, env=environment)
        yield [
            Contender(
                key=each.key,
                name=each.name,
                dsn=dsn,
                worker=[
                    str(PGQUEUER.python),
                    "-m",
                    "bench.rivals.pgqueuer_worker",
                    str(each.batch),
                    each.driver,
                ],
                producer=producer,
                environment=environment,
                is_empty="select not exists (select from pgqueuer)",
                ended="""
                select count(*) filter (where status = 'successful'),
                  count(distinct job_id) filter (where status = 'successful')
                from pgqueuer_log
                """,
                forget="truncate pgqueuer, pgqueuer_log",
            )
            for each in settings
        ]
    finally:
        place.drop("pgqueuer")


def _libpq_variables(dsn: str) -> dict[str, str]:
    parts = conninfo_to_dict(dsn)
    names = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD"}
    names["dbname"] = "DATABASE"
    return {f"PG{names[part]}": str(value) for part, value in parts.items() if part in names}
