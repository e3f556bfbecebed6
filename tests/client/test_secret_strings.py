"""No error, log line or finding shows a part of the password."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable

import pytest

from tests.cli.driving import process
from trunkline import Trunkline, schema
from trunkline.errors import DatabaseUnreachable
from trunkline.worker import WorkerOptions

# Strings that libpq reads otherwise than they were meant, and quotes.
STRINGS = {
    "at": "postgresql://user:s3cr@et@127.0.0.1:1/db",
    "two-at": "postgresql://user:@s3cr@et@127.0.0.1:1/db",
    "slash": "postgresql://user:s3cr/et@127.0.0.1:1/db",
    "at-and-slash": "postgres://user:x@s3cr/et@127.0.0.1:1/db",
    "number-and-slash": "postgresql://user:1234/s3cr@127.0.0.1:1/db",
    "question": "postgresql://user:s3cr?et@127.0.0.1:1/db",
    "percent": "postgresql://user:s3cr%zzet@127.0.0.1:1/db",
    "bracket": "postgresql://user:x@[s3cr@127.0.0.1:1/db",
    "no-host": "postgresql://user:s3cr",
    "other-scheme": "postgresql+psycopg://user:s3cr@127.0.0.1:1/db",
    "no-scheme": "user:s3cr@127.0.0.1:1/db",
    "space": "host=127.0.0.1 port=1 password=pa s3cr user=user",
    "misspelt": "host=127.0.0.1 port=1 pasword=s3cr s3cr",
    "quote": "host=127.0.0.1 port=1 password='s3cr user=user",
}


def _app(dsn: str) -> Trunkline:
    app = Trunkline(dsn)
    app.task(name="nothing")(_nothing)
    return app


def _nothing() -> None:
    """A task without arguments."""


def _async(dsn: str) -> None:
    async def ask() -> None:
        async with _app(dsn) as app:
            await app.tasks["nothing"].enqueue()

    asyncio.run(ask())


def _sync(dsn: str) -> None:
    app = _app(dsn)
    with app.sync:
        app.tasks["nothing"].sync.enqueue()


@pytest.mark.parametrize("dsn", STRINGS.values(), ids=STRINGS)
@pytest.mark.parametrize("use", [_async, _sync, schema.install], ids=["async", "sync", "schema"])
def test_an_error_quotes_nothing(
    dsn: str, use: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(DatabaseUnreachable) as refused:
        use(dsn)
    shown = "".join(traceback.format_exception(refused.value))
    # The source line of a test that is shown in a traceback is not ours.
    for text in (str(refused.value), refused.value.hint, shown, caplog.text):
        assert "s3cr" not in text
        assert "et@" not in text
    assert refused.value.hint


@pytest.mark.parametrize("dsn", [STRINGS["at"], STRINGS["no-host"]], ids=["at", "no-host"])
@pytest.mark.parametrize(
    "command",
    [
        ("doctor",),
        ("doctor", "--json"),
        ("jobs", "list"),
        ("schema", "verify"),
        ("db", "psql"),
        ("db", "status"),
        ("up",),
        ("worker", "tests.chaos.app:app", "--log", "json"),
    ],
    ids=" ".join,
)
def test_a_command_shows_nothing(dsn: str, command: tuple[str, ...], tmp_path: str) -> None:
    home = {"TRUNKLINE_HOME": f"{tmp_path}/home"}
    done = process(*command, dsn=dsn, environment=home)
    assert done.returncode != 0
    for text in (done.stdout, done.stderr):
        assert "s3cr" not in text
        assert "et@" not in text


def test_a_percent_encoded_password_is_fine() -> None:
    with pytest.raises(DatabaseUnreachable, match=r"127\.0\.0\.1"):
        _sync("postgresql://user:s3cr%40et%2Fx@127.0.0.1:1/db?application_name=a@b")


def test_options_do_not_show_their_strings() -> None:
    shown = repr(WorkerOptions(dsn="postgresql://u:s3cr@h/d", listen_dsn="password=s3cr"))
    assert "s3cr" not in shown
