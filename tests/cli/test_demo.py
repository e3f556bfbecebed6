"""``trunkline demo``: what it prints at the end. What it does is tried in tests/docs."""

import pytest
from click.testing import CliRunner

from trunkline.cli.main import cli
from trunkline.demo.account import Account

BALANCED = Account(
    enqueued=3,
    completed=1,
    cancelled=1,
    dead=1,
    retried=0,
    reclaimed=1,
    stale_rejected=1,
    lost=0,
    duplicates=0,
    seconds=15.0,
)


def test_the_demo_ends_by_naming_the_demos_of_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.cli.demo.play", lambda _seconds, _show: BALANCED)
    done = CliRunner().invoke(cli, ["demo"])
    assert done.exit_code == 0, done.output
    assert "trunkline profile demo NAME" in done.output.splitlines()[-1]
    assert "profile demo" not in CliRunner().invoke(cli, ["demo", "--json"]).output
