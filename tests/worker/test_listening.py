"""A listening connection that breaks while it subscribes."""

from typing import Any

import pytest

from tests.support.databases import Database
from tests.worker.scene import eventually
from trunkline.db import listener as listening
from trunkline.db.lasting import LastingConnection
from trunkline.db.listener import Listener
from trunkline.errors import ConnectionLost


async def test_half_a_subscription_is_none(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connecting again in the middle would leave a worker that believes to hear of new work."""
    superuser = database.superuser()
    original = listening._run  # noqa: SLF001 - the place between two statements

    async def run(connection: LastingConnection, statement: str) -> None:
        await original(connection, statement)
        if statement == f"listen {listening.WAKE}":
            superuser.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where application_name = 'trunkline listener' and datname = current_database()"
            )
            await eventually(lambda: not connection.connected, "it is noticed")

    heard: list[Any] = []
    listener = Listener(database.dsn, lambda channel, payload: heard.append((channel, payload)))
    monkeypatch.setattr(listening, "_run", run)
    with pytest.raises(ConnectionLost):
        await listener.listen()
    monkeypatch.setattr(listening, "_run", original)
    assert await listener.listen()
    superuser.execute("notify trunkline_wake, 'default'")
    await eventually(lambda: heard == [("trunkline_wake", "default")], "it hears of work")
    await listener.close()
