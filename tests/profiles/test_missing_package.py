"""A database may have a profile whose package is not installed here: it cannot be compared."""

from __future__ import annotations

import pytest

from tests.support.databases import Database
from trunkline import profiles
from trunkline.cli import diagnosis
from trunkline.profiles import Profile, registry, verification


def test_verify_names_a_profile_whose_package_is_missing(database: Database, shop: Profile) -> None:
    profiles.install(database.dsn, shop)
    (found,) = verification.verify(database.dsn)
    assert str(found).startswith("missing package of profile shop: There is no profile 'shop'")


def test_doctor_warns_of_a_profile_whose_package_is_missing(
    database: Database, shop: Profile
) -> None:
    profiles.install(database.dsn, shop)
    (finding,) = diagnosis._profile_differences(database.dsn)  # noqa: SLF001 - the rest of doctor is long
    assert (finding.check, finding.level) == ("profiles", "warn")
    assert "missing package of profile shop" in finding.message


def test_a_profile_without_a_catalogue_is_checked_for_open_grants(
    database: Database, shop: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "get", lambda _: shop)
    profiles.install(database.dsn, shop)
    assert verification.verify(database.dsn) == []
    database.superuser().execute("grant execute on function shop.take(text) to public")
    assert [str(found) for found in verification.verify(database.dsn)] == [
        "extra grant execute on function shop.take to public"
    ]


def test_the_catalogue_that_a_profile_ships_is_read_from_a_database(
    database: Database, shop: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "get", lambda _: shop)
    profiles.install(database.dsn, shop, schema="store")
    text = profiles.catalogue(database.dsn, shop, schema="store")
    (shop.root / "catalog.json").write_text(text, encoding="utf-8")  # type: ignore[attr-defined]
    assert '"shop.take(text)"' in text
    profiles.install(database.dsn, shop)
    assert verification.verify(database.dsn) == []
    database.superuser().execute("drop function shop.take(text)")
    assert any(
        "missing function shop.take" in str(one) for one in verification.verify(database.dsn)
    )
