"""Whether the database answers and its duties run, asked at most once a second."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from trunkline.errors import TrunklineError
from trunkline.http.caller import CallerSession

__all__ = ["ServerHealth"]

_log = logging.getLogger("trunkline.http")
# Anybody may ask, so an answer is kept for a moment.
_FRESH: Final = 1.0
_PATIENCE: Final = 3.0


class ServerHealth:
    """Reads the duties for /health and /ready."""

    def __init__(self, session: CallerSession) -> None:
        self._session = session
        self._lock = asyncio.Lock()
        self._read_at = -_FRESH
        self._late: int | None = None

    async def late_duties(self) -> int | None:
        """Return how many enabled duties are late; None if the database does not answer."""
        async with self._lock:
            if time.monotonic() - self._read_at >= _FRESH:
                self._late = await self._read()
                self._read_at = time.monotonic()
            return self._late

    async def _read(self) -> int | None:
        try:
            async with asyncio.timeout(_PATIENCE):
                duties = await self._session.operator.duties.list()
        except (TrunklineError, TimeoutError) as error:
            _log.warning("the database does not answer: %s", error)
            return None
        return sum(duty.enabled and duty.late for duty in duties)
