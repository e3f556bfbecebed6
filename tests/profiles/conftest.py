"""A shop as a profile: one script, one question, one registered refusal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.distributions import write_distribution
from trunkline.errors import ProfileRefusal
from trunkline.profiles import Phase, Profile, RollbackStep

TRUNKLINE = str(Path(sys.executable).with_name("trunkline"))
Run = Callable[..., subprocess.CompletedProcess[str]]


class NoStock(ProfileRefusal):
    """The item is out of stock."""

    code = "shop_no_stock"
    sqlstate = "SH001"
    hint = "Order it first."
    page = "https://shop.example/errors#no-stock"


_SCRIPT = """\
-- Takes an item out of stock.
-- requires:

create or replace function shop.take(p_item text)
returns void
language plpgsql
as $$
begin
  raise exception using errcode = 'SH001', message = 'nothing left',
    detail = json_build_object('code', 'no_stock', 'item', p_item)::text, hint = 'Order more.';
end;
$$;
revoke all on function shop.take(text) from public;
grant execute on function shop.take(text) to trunkline_producer;
"""


@pytest.fixture
def shop(tmp_path: Path) -> Profile:
    """A profile without a demonstration, topics, validation, wake-ups or roll-out."""
    root = tmp_path / "shop_sql"
    for name, text in {
        "phase1/stock.sql": _SCRIPT,
        "ask/take.sql": "select shop.take(%(item)s)",
        "rollback/drop_stock.sql": "drop function if exists shop.take(text);",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Profile(
        name="shop",
        description="Takes items out of stock.",
        schema="shop",
        root=root,
        phases=(Phase("phase1", "stock", core=True),),
        rollback=(RollbackStep("drop_stock", "drop take", ("phase1/stock",)),),
        errors=(NoStock,),
    )


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put a distribution on the path: ``distribution("shop", {"shop": "shop:PROFILE"})``."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def _write(name: str, entry_points: dict[str, str]) -> None:
        write_distribution(tmp_path, name, entry_points)

    return _write


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run `trunkline profile …` with the distributions of this test."""

    def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [TRUNKLINE, "profile", *arguments],
            env=os.environ | {"PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    return _run
