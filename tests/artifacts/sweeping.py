"""Lets time pass for the engine and the files, and sweeps."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

import psycopg

from tests.support.internals import storage
from tests.worker.scene import Scene
from trunkline.artifacts import AsyncStore, LocalStore, Store
from trunkline.worker import sweeper as module
from trunkline.worker.sweeper import Sweeper

__all__ = ["age_everything", "files_of", "removed", "sweep"]

_TWO_DAYS = 2 * 24 * 3600


def files_of(store: Store) -> list[str]:
    """Return the files of the store without the mark of the database."""
    return [file.path for file in store.list() if "/" in file.path]


def age_everything(superuser: psycopg.Connection[Any], store: LocalStore) -> None:
    """Make all that is there two days old."""
    then = time.time() - _TWO_DAYS
    for path in store.folder.rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))
    storage.run_duty(superuser)
    storage.age_published(superuser, "2 days")
    storage.make_removals_due(superuser)


async def removed(scene: Scene, store: Store) -> None:
    """Let the duty and a sweeper do what they do on their own in a while."""
    storage.run_duty(scene.superuser)
    storage.make_removals_due(scene.superuser)
    await _sweep(scene.database.dsn, store, None)


def sweep(dsn: str, store: Store, *, steps: int | None = None) -> Sweeper:
    """Sweep until there is nothing to do, or for so many steps."""
    return asyncio.run(_sweep(dsn, store, steps))


async def _sweep(dsn: str, store: Store, steps: int | None) -> Sweeper:
    sweeper = Sweeper(dsn, "sweeper", AsyncStore(store))
    before = module._PER_TURN  # noqa: SLF001 - a smaller turn
    try:
        if steps is not None:
            module._PER_TURN = steps * module._BATCH  # type: ignore[misc]  # noqa: SLF001
        await sweeper.run_once()
        if steps is None:
            await sweeper.run_once()
    finally:
        module._PER_TURN = before  # type: ignore[misc]  # noqa: SLF001
        await sweeper.close()
    return sweeper
