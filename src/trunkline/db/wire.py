"""Calls over a connection whose socket stays registered in the event loop.

psycopg's asynchronous cursors register the socket for each statement and go through four
generators: 205 to 240 µs of processor time for one small call, where asyncpg takes 93 to 125. This
module uses libpq directly, with psycopg's own adaptation of types: 76 to 110 µs. Because the socket
is always watched, a broken idle connection is detected, and notifications arrive at once.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeVar

import psycopg
from psycopg import pq
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result

from trunkline.db.call import Call
from trunkline.db.patient import AsyncPatientConnection, silence
from trunkline.db.translate import from_driver

__all__ = ["Wire"]

T = TypeVar("T")

# A statement is prepared at this use, unless there is a pooler.
_PREPARE_AFTER: Final = 2
_PLACEHOLDER: Final = re.compile(r"%[sb]")
_TEXT, _BINARY = pq.Format.TEXT, pq.Format.BINARY
_FINE: Final = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)


@lru_cache(maxsize=256)
def _numbered(sql: str) -> tuple[bytes, tuple[PyFormat, ...]]:
    """Return the statement with $1, $2 … and the format of each parameter."""
    formats = tuple(
        PyFormat.BINARY if mark == "%b" else PyFormat.AUTO for mark in _PLACEHOLDER.findall(sql)
    )
    numbers = iter(range(1, len(formats) + 1))
    return _PLACEHOLDER.sub(lambda _: f"${next(numbers)}", sql).encode(), formats


class Wire:
    """Owns a connection, which nothing else may use. Runs one call at a time."""

    def __init__(
        self,
        connection: AsyncPatientConnection,
        on_notice: Callable[[str, str], None] | None = None,
    ) -> None:
        self._connection = connection
        self._pg = connection.pgconn
        self._types = Transformer(connection)
        self._on_notice = on_notice
        self._loop = asyncio.get_running_loop()
        self._socket = self._pg.socket
        self._answer: asyncio.Future[list[Any]] | None = None
        self._results: list[Any] = []
        self._seen: dict[tuple[str, Any], int] = {}
        self._names: dict[tuple[str, Any], bytes] = {}
        self._open = True
        # One timer for many calls: setting and cancelling one per call would be 10 % of the work.
        self._deadline = self._patience = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._loop.add_reader(self._socket, self._on_readable)

    @property
    def closed(self) -> bool:
        """Whether the wire can no longer be used."""
        return not self._open

    async def run(self, call: Call[T], patience: float) -> T:
        """Run a call; close the wire if the server does not answer in time."""
        try:
            result = await self._send(call, patience)
        except psycopg.Error as error:
            raise from_driver(error) from error
        types = self._types
        types.set_pgresult(result)
        return call.decode(types.load_rows(0, result.ntuples, tuple))

    async def close(self) -> None:
        """Close the connection."""
        self.abandon()

    def abandon(self, error: Exception | None = None) -> None:
        """Close at once; a call that waits for an answer raises the error."""
        if not self._open:
            return
        self._open = False
        if self._timer is not None:
            self._timer.cancel()
        if not self._loop.is_closed():
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
        self._pg.finish()
        waiting, self._answer = self._answer, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(error or psycopg.OperationalError("the connection is closed"))

    async def _send(self, call: Call[Any], patience: float) -> Any:
        statement, formats = _numbered(call.sql)
        types = self._types
        values = types.dump_sequence(call.parameters, formats)
        shape = (call.sql, types.types)
        result_format = _BINARY if call.binary else _TEXT
        name = self._names.get(shape)
        if name is None and formats and await self._is_worth_preparing(shape, statement, patience):
            name = self._names[shape]
            # While the statement was prepared, `types` may have been used for another one.
            values = types.dump_sequence(call.parameters, formats)
        if not self._open:
            raise psycopg.OperationalError("the connection is closed")
        if name is not None:
            self._pg.send_query_prepared(name, values, types.formats, result_format)
        else:
            self._pg.send_query_params(statement, values, types.types, types.formats, result_format)
        return await self._answered(patience)

    async def _is_worth_preparing(
        self, shape: tuple[str, Any], statement: bytes, patience: float
    ) -> bool:
        if self._connection.prepare_threshold is None:
            return False
        seen = self._seen[shape] = self._seen.get(shape, 0) + 1
        if seen < _PREPARE_AFTER or not self._open:
            return False
        name = f"trunkline_{len(self._names)}".encode()
        self._pg.send_prepare(name, statement, self._types.types)
        await self._answered(patience)
        self._names[shape] = name
        return True

    async def _answered(self, patience: float) -> Any:
        answer = self._answer = self._loop.create_future()
        if self._pg.flush():
            self._loop.add_writer(self._socket, self._on_writable)
        self._patience = patience
        self._wait_until(self._loop.time() + patience)
        try:
            results = await answer
        except asyncio.CancelledError:
            # The answer may still arrive, and the next call would read it as its own.
            self.abandon()
            raise
        for result in results:
            # The first error counts: libpq adds "invalid socket" after the server's last message.
            if result.status not in _FINE:
                raise error_from_result(result)
        return results[-1]

    def _wait_until(self, deadline: float) -> None:
        """Set the timer. One that fires earlier checks the deadline and sets itself again."""
        self._deadline = deadline
        if self._timer is not None:
            if self._timer.when() <= deadline:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(deadline, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        if self._answer is None:
            return
        if self._loop.time() < self._deadline:
            self._wait_until(self._deadline)
        else:
            self.abandon(psycopg.OperationalError(silence(self._patience)))

    def _on_writable(self) -> None:
        try:
            if not self._pg.flush():
                self._loop.remove_writer(self._socket)
        except psycopg.Error as error:
            self.abandon(error)

    def _on_readable(self) -> None:
        pg = self._pg
        broken: psycopg.Error | None = None
        try:
            pg.consume_input()
            try:
                # uvloop reports a broken socket only once, together with the data before it, so
                # read again to detect the break.
                pg.consume_input()
            except psycopg.Error as error:
                broken = error
            while not pg.is_busy():
                result = pg.get_result()
                if result is None:
                    break
                self._results.append(result)
            else:
                self._forward_notices()
                if broken is not None:
                    self.abandon(self._server_error() or broken)
                return
        except psycopg.Error as error:
            self.abandon(self._server_error() or error)
            return
        self._forward_notices()
        if self._results and self._answer is not None:
            results, self._results = self._results, []
            answer, self._answer = self._answer, None
            if not answer.done():
                answer.set_result(results)
        if broken is not None:
            self.abandon(broken)

    def _forward_notices(self) -> None:
        while (notice := self._pg.notifies()) is not None:
            if self._on_notice is not None:
                self._on_notice(notice.relname.decode(), notice.extra.decode())

    def _server_error(self) -> Exception | None:
        """Return the error that the server sent before it closed the connection, if any."""
        for result in self._results:
            if result.status not in _FINE:
                return error_from_result(result)
        return None
