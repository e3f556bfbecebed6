"""Which server is used, and what is reported of it; the embedded server is made up."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trunkline import embedded
from trunkline.db import dsn as module
from trunkline.db.address import address
from trunkline.embedded import service
from trunkline.embedded.server import INSTALLER
from trunkline.errors import DatabaseUnreachable, DsnRequired, InvalidVariable

_GIVEN = "postgresql://u@h/d"


class Server:
    """An embedded server that is used."""

    def __init__(self, home: Path) -> None:
        self.dsn = f"postgresql://e@/trunkline?host={home}"
        self.superuser_dsn = f"postgresql://postgres@/trunkline?host={home}"
        self.folder = SimpleNamespace(home=home)
        self.users = 0
        self.revived = 0

    def ensure_running(self) -> None:
        self.revived += 1

    @contextmanager
    def used(self) -> Iterator["Server"]:
        self.users += 1
        try:
            yield self
        finally:
            self.users -= 1


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Server:
    for name in ("TRUNKLINE_DSN", "TRUNKLINE_EMBEDDED"):
        monkeypatch.delenv(name, raising=False)
    made = Server(tmp_path)
    monkeypatch.setattr(embedded, "acquire", made.used)
    return made


@pytest.fixture(autouse=True)
def heard(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="trunkline")


def test_a_given_string_comes_before_the_variable(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TRUNKLINE_DSN", " postgresql://v@h/d ")
    for given, expected in ((_GIVEN, _GIVEN), (None, "postgresql://v@h/d")):
        assert module.given(given) == expected
        with module.resolve(given) as found:
            assert found == expected
        with module.resolve_administered(given) as server_found:
            assert server_found == (expected, expected, None)
        with module.resolve_ready(given) as found:
            assert found == expected
    assert caplog.records == []
    monkeypatch.setenv("TRUNKLINE_DSN", " ")
    assert module.given() is None


def test_an_empty_or_unreadable_string_is_refused(server: Server) -> None:
    for wrong in ("", "  "):
        with pytest.raises(DatabaseUnreachable, match=r"^The connection string is empty$"):
            module.given(wrong)
    with pytest.raises(DatabaseUnreachable, match="cannot be read"), module.resolve("nonsense"):
        pass


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", None),
        (" ", None),
        *((word, True) for word in ("1", "true", "YES", "on")),
        *((word, False) for word in ("0", "false", "No", " off ")),
    ],
)
def test_the_variable_allows_or_refuses_the_embedded_server(
    server: Server, monkeypatch: pytest.MonkeyPatch, value: str, expected: bool | None
) -> None:
    monkeypatch.setenv("TRUNKLINE_EMBEDDED", value)
    assert module.embedded_variable() is expected
    if expected is False:
        with pytest.raises(DsnRequired) as refused, module.resolve():
            pass
        assert str(refused.value) == (
            f"There is no connection string, and TRUNKLINE_EMBEDDED is {value.strip()}, so the"
            " embedded server is not used"
        )
        # What the caller says comes first.
        with module.resolve(embedded=True) as found:
            assert found == server.dsn
    else:
        with module.resolve() as found:
            assert found == server.dsn
            assert server.users == 1
    assert server.users == 0


def test_an_application_may_refuse_the_embedded_server(server: Server) -> None:
    with pytest.raises(DsnRequired) as refused, module.resolve(embedded=False):
        pass
    assert str(refused.value) == (
        "There is no connection string, and the application was created with embedded=False, so the"
        " embedded server is not used"
    )


def test_a_value_that_means_nothing_is_refused_at_once(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUNKLINE_EMBEDDED", "maybe")
    with pytest.raises(InvalidVariable) as refused, module.resolve(_GIVEN):
        pass
    assert str(refused.value) == "TRUNKLINE_EMBEDDED is 'maybe'"
    assert refused.value.hint == (
        "Set TRUNKLINE_EMBEDDED to 0 to require a connection string, to 1 to allow the embedded"
        " server, or unset it."
    )


def test_the_embedded_server_is_reported_once(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with module.resolve(quiet=True):
        assert caplog.records == []
    for _ in range(2):
        with module.resolve():
            pass
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        f"TRUNKLINE_DSN is not set: using the embedded server in {server.folder.home}, which"
        " other machines cannot reach. Set TRUNKLINE_DSN to use your database, or"
        " TRUNKLINE_EMBEDDED=1 if this is intended; TRUNKLINE_EMBEDDED=0 refuses it"
    )


def test_an_embedded_server_that_was_chosen_is_no_warning(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with module.resolve(embedded=True):
        pass
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert record.getMessage() == f"using the embedded server in {server.folder.home}"


def test_what_the_parent_reported_is_not_repeated(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    module.reported(server.dsn)
    with module.resolve():
        pass
    assert caplog.records == []


def test_an_administrator_enters_as_the_superuser(server: Server) -> None:
    with module.resolve_administered() as found:
        assert found == (server.superuser_dsn, server.dsn, INSTALLER)


def test_only_the_embedded_server_of_this_process_is_revived(server: Server) -> None:
    module.revive(server.dsn)
    assert server.revived == 0
    with module.resolve():
        module.revive(_GIVEN)
        assert server.revived == 0
        module.revive(server.dsn)
        assert server.revived == 1


@pytest.mark.parametrize("tcp", [True, False])
def test_the_embedded_server_is_named_by_its_folder(
    monkeypatch: pytest.MonkeyPatch, tcp: bool
) -> None:
    monkeypatch.setattr(service, "dsn", lambda *, tcp=False: f"host=h port={1 if tcp else 2}")
    monkeypatch.setattr(service, "status", lambda: SimpleNamespace(home=Path("/a/b")))
    assert address(f"host=h port={1 if tcp else 2}") == "embedded in /a/b"
    assert address("host=h port=3 dbname=d") == "h:3/d"


def test_a_folder_that_cannot_be_read_names_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(**_: Any) -> str:
        raise PermissionError("no")

    monkeypatch.setattr(service, "dsn", fails)
    assert address("host=h dbname=d port=1") == "h:1/d"
