"""Folders for servers that a test starts itself."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import servers
from trunkline.embedded import stop


@pytest.fixture
def homes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for the folders of servers, all of which are stopped at the end."""
    for name in [name for name in os.environ if name.startswith("TRUNKLINE_")]:
        monkeypatch.delenv(name)
    base = Path(tempfile.mkdtemp(prefix="trunkline-", dir=servers.memory()))
    base.chmod(0o711)
    try:
        yield base
    finally:
        for home in base.iterdir():
            if home.is_dir():
                stop(home, force=True)
        shutil.rmtree(base)
