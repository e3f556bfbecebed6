"""A folder for an embedded server, which is stopped after each test."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.embedded.place import Place
from trunkline.embedded import stop


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder that other accounts can reach too, unlike pytest's own folders."""
    for name in [name for name in os.environ if name.startswith("TRUNKLINE_")]:
        monkeypatch.delenv(name)
    base = Path(tempfile.mkdtemp(prefix="trunkline-"))
    base.chmod(0o711)
    folder = base / "home"
    try:
        yield folder
    finally:
        stop(folder, force=True)
        shutil.rmtree(base)


@pytest.fixture
def place(home: Path) -> Place:
    """An application in that folder, whose commands know no other server."""
    return Place(home)
