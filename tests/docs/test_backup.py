"""The page on backups: saved, restored and loaded by hand, as it says."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.docs import pages
from tests.docs.running import Session, environment
from tests.support import databases, servers
from trunkline.embedded import stop


def test_the_snippets_of_the_page_on_backups_work(request: pytest.FixtureRequest) -> None:
    running = request.config.stash[servers.STASH]
    newest = max(running, key=lambda one: one.major)
    # Servers are started in it, whose account must be able to pass.
    folder = Path(tempfile.mkdtemp(prefix="trunkline-", dir=servers.memory()))
    folder.chmod(0o711)
    with databases.fresh(newest, databases.ensure_template(newest)) as database:
        with database.superuser() as connection:
            # It belongs to a superuser, whom the reader cannot become.
            connection.execute("drop schema trunkline_test cascade")
        known = environment(home=folder / "home", dsn=database.dsn)
        # As on a machine with the client programs of the server's version.
        first, *others = known["PATH"].split(os.pathsep)
        known["PATH"] = os.pathsep.join([first, newest.bindir, *others])
        try:
            with Session(folder, known) as reader:
                for block in pages.blocks(pages.DOCS / "how-to" / "backup.md"):
                    reader.do(block)
        finally:
            for home in ("new", "other"):
                stop(folder / home, force=True)
            shutil.rmtree(folder)
