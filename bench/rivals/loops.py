"""Shared by worker scripts and producers of rivals; uses only the standard library."""

import asyncio
import os
import signal
from urllib.parse import quote, urlencode

__all__ = ["database_url", "until_stopped"]


def database_url(scheme: str = "postgresql") -> str:
    """Return the database of the PG* variables as a URL, for drivers that need one."""
    names = {"user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    options = {option: os.environ.get(f"PG{name}") for option, name in names.items()}
    # All parts are options, because the host may be the folder of a Unix socket.
    query = urlencode({option: value for option, value in options.items() if value})
    return f"{scheme}:///{quote(os.environ['PGDATABASE'], safe='')}?{query}"


async def until_stopped() -> None:
    """Wait for the signal with which service managers stop a worker."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await stopped.wait()
