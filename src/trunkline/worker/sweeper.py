"""Deletes files that nothing refers to, and finds artifacts whose files are gone."""

from __future__ import annotations

import random
from itertools import islice
from typing import Final
from uuid import UUID

from trunkline.artifacts import AsyncStore, LocalStore, Store
from trunkline.artifacts.marker import MARKER, owner_of
from trunkline.db.calls import artifacts as calls
from trunkline.db.lasting import LastingConnection
from trunkline.errors import FileMissing, StoreError
from trunkline.model import SweepTurn
from trunkline.telemetry import count
from trunkline.worker.part import Part

__all__ = ["Sweeper"]

_EVERY: Final = 10.0
# Files of one step. Between two steps the part can be stopped.
_BATCH: Final = 200
# Files and artifacts of one turn, so that a large store does not keep a worker busy.
_PER_TURN: Final = 5000


class Sweeper(Part):
    """Every worker with a store has one; the engine gives each file and each sweep to one of them.

    Only files that an artifact or an attempt has given up are deleted, and files older than
    orphan_age that no row knows. For the second, the store must bear the mark of this database:
    another one may use the same bucket.
    """

    name = "sweeper"

    def __init__(self, dsn: str, worker: str, store: AsyncStore, *, every: float = _EVERY) -> None:
        super().__init__()
        self._connection = LastingConnection(dsn, name="trunkline sweeper")
        self._worker = worker
        self._store = store
        self._every = every
        self._foreign = False
        self.removed = 0
        self.orphans = 0
        self.missing = 0

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def turn(self) -> None:
        """Delete what is queued, sweep a part of the store if that is due, and wait."""
        await self.unless_stopping(self.run_once(), grace=2.0)
        await self.pause(self._every * random.uniform(0.8, 1.2))  # noqa: S311 - spreads workers

    async def run_once(self) -> None:
        """Do one round."""
        while await self.remove():
            if self.stopping.is_set():
                return
        turn = await self._connection.run(calls.take_sweep(self._worker))
        if turn is not None:
            await self.sweep(turn)

    async def remove(self) -> int:
        """Delete some of the queued files; return how many are gone."""
        paths = await self._connection.run(calls.take_removals(self._worker, _BATCH))
        if not paths:
            return 0
        errors = await self._store.call(lambda: _delete(self._store.store, paths))
        gone = await self._connection.run(calls.report_removals(self._worker, paths, errors))
        self.removed += gone
        if failed := [error for error in errors if error is not None]:
            self.log.warning(
                "could not delete %d of %s: %s", len(failed), count(len(paths), "file"), failed[0]
            )
            return 0
        return gone

    async def sweep(self, turn: SweepTurn) -> None:
        """Go on with the sweep for one turn; both ways, files first."""
        cursor = turn.file_cursor
        if await self._is_ours(turn.installation):
            cursor = await self._sweep_files(turn)
        if cursor is None or self._foreign:
            await self._sweep_artifacts()

    async def _is_ours(self, installation: UUID) -> bool:
        owner = await self._store.call(lambda: owner_of(self._store.store, installation))
        if owner != installation and not self._foreign:
            self.log.warning(
                "the store belongs to another database (%s); files without an artifact are not"
                " deleted. Run `trunkline store adopt` if this database has replaced the other",
                owner,
            )
        self._foreign = owner != installation
        return not self._foreign

    async def _sweep_files(self, turn: SweepTurn) -> str | None:
        """Report old files of the store; return where the next turn continues."""
        store = self._store.store
        files = store.list(after=turn.file_cursor or "")
        cursor = turn.file_cursor
        for _ in range(_PER_TURN // _BATCH):
            if self.stopping.is_set():
                return cursor
            page = await self._store.call(lambda: list(islice(files, _BATCH)))
            old = [
                file.path for file in page if file.modified_at < turn.before and file.path != MARKER
            ]
            cursor = page[-1].path if len(page) == _BATCH else None
            found = await self._connection.run(calls.report_files(self._worker, old, cursor))
            if found:
                self.orphans += found
                self.log.warning("%s in the store without an artifact", count(found, "file"))
            if cursor is None:
                break
        if cursor is None and isinstance(store, LocalStore):
            await self._store.call(lambda: store.abandon_uploads(turn.before))
        return cursor

    async def _sweep_artifacts(self) -> None:
        for _ in range(_PER_TURN // _BATCH):
            if self.stopping.is_set():
                return
            page = await self._connection.run(calls.artifacts_to_check(self._worker, _BATCH))
            present = await self._store.call(
                lambda page=page: _present(self._store.store, page)  # type: ignore[misc]
            )
            missing = [
                found[0] for found, is_there in zip(page, present, strict=True) if not is_there
            ]
            there = [found[0] for found, is_there in zip(page, present, strict=True) if is_there]
            cursor = page[-1][0] if len(page) == _BATCH else None
            lost = await self._connection.run(
                calls.report_checked(self._worker, cursor, missing, there)
            )
            if lost:
                self.missing += lost
                self.log.error("%s without a file in the store", count(lost, "artifact"))
            if cursor is None:
                return


def _delete(store: Store, paths: list[str]) -> list[str | None]:
    errors: list[str | None] = []
    for path in paths:
        try:
            store.delete([path])
        except StoreError as error:
            errors.append(str(error))
        else:
            errors.append(None)
    return errors


def _present(store: Store, artifacts: list[tuple[UUID, str, int]]) -> list[bool]:
    """Return for each whether its file is there in its size. An unreachable store raises."""
    present = []
    for _, path, size in artifacts:
        try:
            present.append(store.head(path).bytes == size)
        except FileMissing:
            present.append(False)
    return present
