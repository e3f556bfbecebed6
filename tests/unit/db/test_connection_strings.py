"""Connection strings are read before libpq quotes them; passwords stay out of command lines."""

import pytest

from trunkline.db.conninfo import for_program, parse
from trunkline.errors import DatabaseUnreachable

_UNCLEAR = "The connection string has an @ or a / that is not percent-encoded"
_UNREADABLE = "The connection string cannot be read"
_NO_NUMBER = "The port in the connection string is not a number"


@pytest.mark.parametrize(
    ("dsn", "fields"),
    [
        ("postgresql://u:p%40@h:1/d", {"user": "u", "password": "p@", "host": "h", "port": "1"}),
        ("postgres://h/d", {"host": "h"}),
        ("postgresql://u@h/d?application_name=a@b", {"user": "u", "application_name": "a@b"}),
        ("host=h password=a@b@c/d dbname=d", {"host": "h", "password": "a@b@c/d"}),
        ("host=a,b port=1,2 dbname=d", {"host": "a,b", "port": "1,2"}),
        ("host=a,b port=1, dbname=d", {"port": "1,"}),
    ],
)
def test_a_clear_string_is_read(dsn: str, fields: dict[str, str]) -> None:
    assert parse(dsn).items() >= (fields | {"dbname": "d"}).items()


@pytest.mark.parametrize(
    ("dsn", "message"),
    [
        ("postgresql://u:se@cret@h/d", _UNCLEAR),
        ("  POSTGRES://u:se@cret@h/d", _UNCLEAR),
        ("postgresql://u:se/cret@h/d", _UNCLEAR),
        ("postgresql://[secret", _UNREADABLE),
        ("secret", _UNREADABLE),
        ("hots=h", f"{_UNREADABLE}: did you mean the option host?"),
        ("postgresql://h/d?pasword=secret", f"{_UNREADABLE}: did you mean the option password?"),
        ("zzzzqqqq=secret", _UNREADABLE),
        ("host=h port=secret", _NO_NUMBER),
        ("host=a,b port=1,x", _NO_NUMBER),
    ],
)
def test_an_unreadable_string_is_refused_without_quoting_it(dsn: str, message: str) -> None:
    with pytest.raises(DatabaseUnreachable) as refused:
        parse(dsn)
    assert str(refused.value) == message
    assert refused.value.hint.startswith("Write postgresql://user:password@host:5432/database")
    assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_a_program_gets_the_password_in_its_environment() -> None:
    line, variables = for_program("postgresql://u:secret@h:1/d")
    assert parse(line) == {"user": "u", "host": "h", "port": "1", "dbname": "d"}
    assert variables == {"PGPASSWORD": "secret"}
    assert for_program("host=h")[1] == {}


def test_a_program_cannot_get_the_password_of_a_key() -> None:
    with pytest.raises(DatabaseUnreachable) as refused:
        for_program("host=h sslpassword=secret")
    assert str(refused.value) == "libpq programs take sslpassword only where every user can read it"
    assert refused.value.hint == (
        "Keep it in a service file and set TRUNKLINE_DSN to service=NAME."
    )
