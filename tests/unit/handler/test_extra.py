"""httpx2 is an extra: loaded when a handler uses it, and named if it is missing."""

import subprocess
import sys

import pytest

from tests.unit.handler.conftest import LINK, unlimited
from tests.worker.scene import a_job
from trunkline.errors import HttpNotInstalled
from trunkline.handler.grants import AsyncConnections, AsyncGrants, SyncConnections, SyncGrants

_LOADED = """
import sys
import trunkline, trunkline.cli.main, trunkline.handler, trunkline.testing, trunkline.worker
from trunkline import Context, SyncContext, Trunkline
from trunkline.handler.grants import AsyncConnections, SyncConnections
AsyncConnections(), SyncConnections()
print(sorted({"anyio", "h11", "httpcore2", "httpx2"} & sys.modules.keys()))
"""


def test_it_is_not_loaded_before_a_handler_uses_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_without_it_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    for grants in (
        AsyncGrants(LINK, a_job(), None, AsyncConnections()),
        SyncGrants(LINK, a_job(), None, SyncConnections()),
    ):
        with pytest.raises(HttpNotInstalled) as caught:
            grants.http_client(unlimited())
        assert "pip install 'trunkline[http]'" in caught.value.hint
        assert caught.value.code == "http_not_installed"
