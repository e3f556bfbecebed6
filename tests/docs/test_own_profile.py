"""A user's own profile, as the page has it: built, installed into a clean environment and run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import pages
from tests.docs.running import Session
from tests.support.databases import Database
from tests.support.environments import ROOT, Environment, build
from tests.support.servers import majors


@pytest.mark.slow
def test_a_user_can_ship_a_profile(database: Database, tmp_path: Path) -> None:
    if database.server.major != majors()[-1]:
        pytest.skip("packaging is the same on every server; the newest is enough")
    folder = tmp_path / "greeter"
    folder.mkdir()
    clean = Environment(tmp_path / "clean")
    clean.install(*build(ROOT, tmp_path / "dist", "wheel"))
    variables = clean.variables | {"TRUNKLINE_DSN": database.dsn, "COLUMNS": "100"}
    steps = pages.blocks(pages.DOCS / "how-to" / "profiles.md")
    with Session(folder, variables) as reader:
        for block in steps:
            reader.do(block)
    assert sum(block.file is not None for block in steps) == 7
