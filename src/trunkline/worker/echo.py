"""Measures whether notifications arrive, on the connection that a worker would listen on."""

from __future__ import annotations

import asyncio
import secrets
import time
from datetime import timedelta
from typing import Final

from trunkline.db.call import Call, nothing
from trunkline.db.calls import checks
from trunkline.db.lasting import LastingConnection

__all__ = ["PATIENCE", "Pooled", "echo_time"]

# Seconds to wait for a notification.
PATIENCE: Final = 2.0


class Pooled(Exception):
    """The connection leads through a pooler, where LISTEN would disturb its other users."""


def echo_time(sender_dsn: str, listen_dsn: str) -> timedelta | None:
    """Return how long a notification takes from one connection to another.

    None means that it did not arrive. The connections are separate, because a session receives its
    own notifications through any pooler.
    """
    return asyncio.run(_echo_time(sender_dsn, listen_dsn))


async def _echo_time(sender_dsn: str, listen_dsn: str) -> timedelta | None:
    token = secrets.token_hex(8)
    heard = asyncio.Event()

    def note(_channel: str, payload: str) -> None:
        if payload == token:
            heard.set()

    listener = LastingConnection(listen_dsn, name="trunkline listener", on_notice=note)
    sender = LastingConnection(sender_dsn, name="trunkline listener")
    try:
        if await listener.is_pooled():
            raise Pooled
        await listener.run(Call(checks.LISTEN, (), nothing))
        started = time.monotonic()
        await sender.run(checks.notify(token))
        async with asyncio.timeout(PATIENCE):
            await heard.wait()
        return timedelta(seconds=time.monotonic() - started)
    except TimeoutError:
        return None
    finally:
        await listener.close()
        await sender.close()
