"""NOTIFY channels and what their payloads are, heard by really listening.

Which channels exist is read from the bodies of all installed functions and from the source of the
package: each call of pg_notify there names its channel as a literal. A channel on which nothing
was heard, and a call without a literal, have lines that say so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import trunkline
from tests.cli.driving import Cli
from tests.support.calls import Calls
from tests.support.databases import Database

__all__ = ["lines"]

_BODIES = "select prosrc from pg_proc where prosrc ~* 'notify' and proname <> 'pg_notify'"
_NOTIFY = re.compile(r"\bpg_notify\s*\(\s*([^,]*),|\bnotify\s+(trunkline\w*)", re.IGNORECASE)
_PACKAGE = Path(trunkline.__file__).parent
_QUEUE = "post"


def lines(database: Database) -> Iterator[str]:
    """Yield a line for each channel and kind of payload; the executor profile is installed."""
    named = sorted(_named(database))
    meanings: dict[str, set[str]] = {channel: set() for channel in named}
    for channel, payload, jobs in _heard(database, [n for n in named if n.isidentifier()]):
        meanings[channel].add(_meaning(payload, jobs))
    for channel, found in meanings.items():
        for meaning in sorted(found) or ["nothing was heard"]:
            yield f"channel {channel}: {meaning}"


def _named(database: Database) -> set[str]:
    texts = [row[0] for row in database.connect().execute(_BODIES).fetchall()]
    texts += [path.read_text(encoding="utf-8") for path in sorted(_PACKAGE.rglob("*.py"))]
    found = {one or other for text in texts for one, other in _NOTIFY.findall(text)}
    return {name.strip().strip("'") for name in found}


def _heard(database: Database, channels: list[str]) -> Iterator[tuple[str, str, set[str]]]:
    """Do what notifies, and yield channel, payload and the ids of the jobs."""
    listener = database.connect("trunkline_worker")
    for channel in channels:
        listener.execute(f"listen {channel}".encode())
    producer = Calls(database.connect("trunkline_producer"))
    worker = Calls(database.connect("trunkline_worker"))
    producer.register("notified", queue=_QUEUE)
    worker.connection.execute("select trunkline.register_worker('asleep')")
    worker.connection.execute("select trunkline.sleep('asleep')")
    job = producer.enqueue("notified").job_id
    producer.connection.execute("select trunkline.follow(%s)", ([job],))
    assert worker.claim("asleep", queues=[_QUEUE]).jobs == [job]
    producer.change("cancel", job)
    worker.connection.execute("select executor.wake_execution_engine()")
    Cli(database.dsn).run("doctor")
    # Notifications come in the order of commits: what comes before this one is all.
    end = str(uuid4())
    database.superuser().execute("select pg_notify(%s, %s)", (channels[0], end))
    for notice in listener.notifies(timeout=180):
        if notice.payload == end:
            return
        yield notice.channel, notice.payload, {str(job)}
    raise AssertionError("the last notification was not heard")


def _meaning(payload: str, jobs: set[str]) -> str:
    if payload in jobs:
        return "payload is the id of a job"
    if payload in {_QUEUE, "fase1-executor"}:
        return "payload is the name of a queue"
    if re.fullmatch(r"[0-9a-f-]{16,}", payload):
        return "payload is an opaque token"
    return f"payload {payload!r}"
