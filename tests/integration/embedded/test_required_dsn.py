"""An application or an environment can require a connection string."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.integration.embedded.place import Place
from trunkline import Trunkline
from trunkline.errors import DsnRequired, InvalidArgument, InvalidVariable


def test_an_application_can_require_a_connection_string(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUNKLINE_HOME", str(home))
    with pytest.raises(DsnRequired, match="embedded=False") as refused:
        Trunkline(embedded=False).sync.jobs.list()
    assert refused.value.code == "dsn_required"
    assert "TRUNKLINE_DSN" in refused.value.hint
    monkeypatch.setenv("TRUNKLINE_EMBEDDED", "off")
    with pytest.raises(DsnRequired, match="TRUNKLINE_EMBEDDED is off"):
        Trunkline().sync.jobs.list()
    # What the application says goes before the environment, as with the connection string.
    monkeypatch.setenv("TRUNKLINE_EMBEDDED", "1")
    with pytest.raises(DsnRequired):
        Trunkline(embedded=False).sync.jobs.list()
    assert not home.exists()


def test_an_asynchronous_client_requires_one_too(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUNKLINE_HOME", str(home))

    async def look() -> None:
        async with Trunkline(embedded=False) as app:
            await app.jobs.list()

    with pytest.raises(DsnRequired):
        asyncio.run(look())
    assert not home.exists()


def test_the_argument_goes_before_the_variable(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUNKLINE_HOME", str(home))
    monkeypatch.setenv("TRUNKLINE_EMBEDDED", "0")
    with Trunkline(embedded=True).sync as client:
        assert client.jobs.list() == []


def test_bad_values_are_refused_also_where_a_server_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRUNKLINE_EMBEDDED", "banana")
    with pytest.raises(InvalidVariable, match="banana") as refused:
        Trunkline("postgresql://127.0.0.1:1/x").sync.jobs.list()
    assert "TRUNKLINE_EMBEDDED to 0" in refused.value.hint
    with pytest.raises(InvalidArgument):
        Trunkline(embedded="0")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [
        ("jobs", "list"),
        ("schema", "install"),
        ("up",),
        ("up", "shop:app"),
        ("worker", "shop:app"),
        ("worker", "shop:app", "--processes", "2"),
        ("db", "psql", "-c", "select 1"),
    ],
)
def test_the_command_line_respects_the_variable(place: Place, arguments: tuple[str, ...]) -> None:
    ended = place.trunkline(*arguments, TRUNKLINE_EMBEDDED="0")
    assert ended.returncode == 1
    assert "Code: dsn_required" in ended.stderr
    assert "Set TRUNKLINE_DSN" in ended.stderr
    assert not place.home.exists()


@pytest.mark.parametrize("command", ["worker", "up"])
def test_a_worker_respects_the_application(place: Place, command: str) -> None:
    place.write("embedded=False")
    ended = place.trunkline(command, "shop:app")
    assert "Code: dsn_required" in ended.stderr
    # An empty string is a mistake, not a wish for the embedded server.
    place.write()
    assert place.trunkline(command, "shop:app", "--dsn", "").returncode == 1
    assert not place.home.exists()
