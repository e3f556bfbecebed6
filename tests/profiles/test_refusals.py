"""What a profile registers: exceptions with code, hint and page for the SQLSTATEs of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.profiles.conftest import NoStock
from tests.support.databases import Database
from trunkline import profiles
from trunkline.cli.main import report
from trunkline.errors import ProfileBroken, ProfileError, ProfileNotInstalled, ProfileRefusal
from trunkline.profiles import Profile, demos, rollout, troubleshooting, validation, wake_ups


def test_a_refusal_of_a_function_is_the_registered_exception(
    database: Database, shop: Profile, capsys: pytest.CaptureFixture[str]
) -> None:
    assert profiles.install(database.dsn, shop) == ("phase1/stock",)
    with pytest.raises(NoStock) as refused, profiles.session(database.dsn, shop) as session:
        session.ask("take", item="pear")
    assert refused.value.detail == {"code": "no_stock", "item": "pear"}
    # The function knows best what to do.
    assert refused.value.hint == "Order more."
    report(refused.value)
    printed = capsys.readouterr().err
    assert "nothing left (item pear)" in printed
    assert "Code: shop_no_stock" in printed
    assert "Page: https://shop.example/errors#no-stock" in printed


def test_a_profile_may_live_in_another_schema(database: Database, shop: Profile) -> None:
    profiles.install(database.dsn, shop, schema="store")
    with pytest.raises(ProfileNotInstalled), profiles.session(database.dsn, shop):
        pass
    with pytest.raises(NoStock), profiles.session(database.dsn, shop, schema="store") as session:
        session.ask("take", item="pear")
    assert [state.state for state in profiles.status(database.dsn, shop, schema="store")] == [
        "applied"
    ]
    assert profiles.rollback(database.dsn, shop, schema="store") == ("drop_stock",)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"sqlstate": "TL001"}, "SQLSTATE 'TL001' is not one that a profile may use"),
        ({"sqlstate": "P0001"}, "SQLSTATE 'P0001' is not one that a profile may use"),
        ({"sqlstate": "SH1"}, "SQLSTATE 'SH1' is not one that a profile may use"),
        ({"code": "no_stock"}, "its code 'no_stock' does not start with shop_"),
        ({"hint": ""}, "it has no hint"),
        ({"hint": ProfileRefusal.hint}, "it has no hint"),
        ({"page": "", "hint": ""}, "it has no hint and no page"),
    ],
)
def test_an_incomplete_registration_is_refused(
    shop: Profile, changed: dict[str, Any], problem: str
) -> None:
    error: type[ProfileRefusal] = type("Bad", (NoStock,), changed)
    with pytest.raises(ProfileBroken, match=f"registers Bad: {problem}"):
        replace(shop, errors=(error,))


def test_two_errors_with_one_sqlstate_are_refused(shop: Profile) -> None:
    with pytest.raises(ProfileBroken, match="two errors with one SQLSTATE"):
        replace(shop, errors=(NoStock, NoStock))


def test_what_a_profile_does_not_have_is_refused_by_name(shop: Profile) -> None:
    """Before anything is connected to."""
    with pytest.raises(ProfileError, match="shop has no demonstration"):
        demos.demo(shop)
    with pytest.raises(ProfileError, match="shop has no validation tests"):
        validation.validate("", shop)
    with pytest.raises(ProfileError, match="shop has no wake-ups"):
        wake_ups.keep_waking("", shop)
    with pytest.raises(ProfileError, match="shop has no topic 'stuck'; it has: none"):
        troubleshooting.troubleshoot("", shop, "stuck")
    with pytest.raises(ProfileError, match="shop has no steps of a roll-out"):
        rollout.steps("", shop)


@pytest.mark.parametrize(
    ("module", "problem"),
    [("no_such_module", "cannot be imported: No module"), ("json", "json, .* is incomplete")],
)
def test_a_broken_demonstration_is_refused(shop: Profile, module: str, problem: str) -> None:
    with pytest.raises(ProfileBroken, match=problem):
        demos.demo(replace(shop, demo=module))
