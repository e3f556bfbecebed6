"""The server of all sandboxes of a process, and the plugin that shares it."""

import atexit
import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from trunkline import testing
from trunkline.testing import Sandbox, plugin, server

_NOW = datetime(2026, 5, 1, 12, 30, 15, tzinfo=UTC)


class Embedded:
    def __init__(self, home: Path, settings: Any) -> None:
        self.home, self.settings = home, settings
        self.shared = server._here.shared is not None  # noqa: SLF001
        self.superuser_dsn = "s"
        self.closed = 0

    def close(self) -> None:
        assert server._here.lock.locked()  # noqa: SLF001
        self.closed += 1


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Embedded]]:
    made: list[Embedded] = []
    templates: list[int] = []

    def acquire(home: Path, *, settings: Any) -> Embedded:
        assert server._here.lock.locked()  # noqa: SLF001
        # Before the server's own end is registered.
        assert server._here.own in {home, None}  # noqa: SLF001
        made.append(Embedded(home, settings))
        return made[-1]

    monkeypatch.setattr(server, "acquire", acquire)
    monkeypatch.setattr(server, "ensure_template", lambda *_: templates.append(1))
    monkeypatch.setattr(server, "_here", server._Server())  # noqa: SLF001
    ends: list[Any] = []
    monkeypatch.setattr(atexit, "register", lambda *end: ends.append(end))
    yield made
    own = [one for one in made if not one.shared]
    removed = [end[1:] for end in ends if end[0] is server._remove]  # noqa: SLF001
    assert removed == [(one.home, os.getpid()) for one in own]
    assert len(templates) == len(made)


def test_all_sandboxes_share_one_server_in_a_separate_folder(started: list[Embedded]) -> None:
    server.leave()
    gate = threading.Barrier(3)

    def use() -> None:
        gate.wait(60)
        server.running()

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    (one,) = started
    assert one.home.is_dir()
    assert one.settings["fsync"] == "off"
    assert server.running() is one  # type: ignore[comparison-overlap]
    server.leave()  # type: ignore[unreachable]
    server.leave()
    assert one.closed == 1
    assert not one.home.exists()
    server.running()
    assert len(started) == 2
    server.leave()


def test_processes_share_the_folder_of_the_variable(
    started: list[Embedded], tmp_path: Path
) -> None:
    server.share(tmp_path)
    server.running()
    server.leave()
    assert started[0].home == tmp_path
    assert tmp_path.exists()


def test_a_fork_removes_nothing(tmp_path: Path) -> None:
    server._remove(tmp_path, 1)  # noqa: SLF001
    assert tmp_path.exists()


def test_processes_of_xdist_share_one_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stash = pytest.Stash()
    config: Any = SimpleNamespace(stash=stash)
    nodes: list[Any] = [SimpleNamespace(config=config, workerinput={}) for _ in range(2)]
    for node in nodes:
        plugin.pytest_configure_node(node)
    first, second = (node.workerinput["trunkline_sandbox_home"] for node in nodes)
    assert first == second
    told: list[Path] = []
    monkeypatch.setattr(server, "share", told.append)
    plugin.pytest_configure(nodes[0])
    plugin.pytest_configure(config)
    assert told == [Path(first)]
    left: list[int] = []
    monkeypatch.setattr(server, "leave", lambda: left.append(1))
    plugin.pytest_unconfigure(config)
    assert left == [1]
    assert not Path(first).exists()
    plugin.pytest_unconfigure(SimpleNamespace(stash=pytest.Stash()))  # type: ignore[arg-type]


def test_the_module_has_the_sandboxes_and_nothing_else() -> None:
    assert testing.Sandbox is Sandbox
    with pytest.raises(AttributeError, match="has no attribute 'Other'"):
        assert testing.Other


def test_ids_are_taken_from_whatever_names_a_job() -> None:
    from trunkline.testing.sandbox import _id  # noqa: PLC0415

    job = uuid4()
    assert _id(job) == _id(str(job)) == _id(SimpleNamespace(id=job)) == job  # type: ignore[arg-type]
