"""A wait is over when its time is, also while the server says nothing."""

from __future__ import annotations

import time

import pytest

from tests.support.databases import Database
from tests.support.internals.locks import lock_table
from trunkline import Trunkline
from trunkline.errors import WaitTimeout


def test_a_wait_is_not_longer_than_asked_while_tables_are_locked(database: Database) -> None:
    app = Trunkline(database.dsn)

    @app.task
    def work() -> None: ...

    with app.sync:
        job = work.sync.enqueue()
        locker = database.superuser()
        locker.autocommit = False
        lock_table(locker, "waiting")
        begin = time.monotonic()
        with pytest.raises(WaitTimeout):
            job.wait(timeout=0.5)
        # Far below the 30 seconds that an ordinary call is given.
        assert time.monotonic() - begin < 25
        locker.rollback()
        assert job.get().id == job.id
