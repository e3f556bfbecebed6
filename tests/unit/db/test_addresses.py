"""A server is named by host, port and database, never by user or password."""

import pytest

from trunkline.db.address import address


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("dsn", "expected"),
    [
        ("postgresql://me:secret@db.example:6000/shop", "db.example:6000/shop"),
        ("postgresql://me:secret@db.example/shop", "db.example:5432/shop"),
        ("host=a,b,c port=1,2,3 dbname=d", "a:1/d, b:2/d, c:3/d"),
        ("host=a,b port=7 dbname=d", "a:7/d, b:7/d"),
        ("host=a,b,c port=1,2 dbname=d", "a:1/d, b:1/d, c:1/d"),
        ("hostaddr=10.0.0.1 dbname=d", "10.0.0.1:5432/d"),
        ("host=name hostaddr=10.0.0.1 dbname=d", "name:5432/d"),
        ("dbname=d", "local socket:5432/d"),
        ("user=me", "local socket:5432/me"),
        ("service=shop", "service shop"),
        ("service=shop host=h dbname=d", "h:5432/d"),
        ("postgresql://[", "an unreadable connection string"),
    ],
)
def test_an_address_has_host_port_and_database(dsn: str, expected: str) -> None:
    assert address(dsn) == expected


def test_what_the_string_leaves_out_comes_from_the_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGHOST", "h")
    monkeypatch.setenv("PGPORT", "7")
    monkeypatch.setenv("PGDATABASE", "d")
    assert address("") == "h:7/d"
    assert address("host=other dbname=x") == "other:7/x"
