"""Profiles are found by entry points and imported when asked for; bad ones are refused by name."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoints
from pathlib import Path

import pytest

from tests.profiles.conftest import Run
from trunkline import profiles
from trunkline.errors import DuplicateProfile, ProfileBroken, UnknownProfile
from trunkline.profiles import registry

Write = Callable[[str, dict[str, str]], None]
_PROFILE = """\
from pathlib import Path

from trunkline.profiles import Profile

PROFILE = Profile("{name}", "A market.", "{name}", Path(), (), ())
NUMBER = 7
"""


def module(folder: Path, name: str, profile: str | None = None) -> None:
    text = _PROFILE.format(name=profile or name)
    (folder / f"{name}.py").write_text(text, encoding="utf-8")


def test_a_profile_of_another_distribution_is_found_and_imported_when_asked_for(
    tmp_path: Path, distribution: Write
) -> None:
    module(tmp_path, "market")
    module(tmp_path, "bazaar")
    distribution("markets", {"market": "market:PROFILE", "bazaar": "bazaar:PROFILE"})
    assert profiles.names() == ("bazaar", "clinical", "executor", "exports", "market", "studio")
    assert "market" not in sys.modules
    assert profiles.get("market").description == "A market."
    assert "bazaar" not in sys.modules
    assert registry.distribution("market") == "markets 1.0"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no_such_module:PROFILE", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("market_a:NOTHING", "AttributeError: "),
        ("market_b:PROFILE", "ZeroDivisionError: division by zero"),
        ("market_c:PROFILE", "SystemExit: 3"),
        ("no module at all", "AttributeError: "),
        ("market_a:NUMBER", "is a int: market_a:NUMBER"),
        ("market_a:PROFILE", "calls itself 'bazaar'"),
    ],
    ids=["import", "attribute", "exception", "exit", "malformed", "type", "name"],
)
def test_a_broken_profile_is_refused_with_its_distribution(
    tmp_path: Path, distribution: Write, value: str, reason: str
) -> None:
    module(tmp_path, "market_a", "bazaar")
    (tmp_path / "market_b.py").write_text("1 / 0\n", encoding="utf-8")
    (tmp_path / "market_c.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    distribution("markets", {"market": value})
    with pytest.raises(ProfileBroken) as refused:
        profiles.get("market")
    assert "'market' of markets 1.0" in str(refused.value)
    assert reason in str(refused.value)
    assert refused.value.hint


def test_the_list_shows_a_broken_profile_with_its_error(
    tmp_path: Path, distribution: Write, run: Run
) -> None:
    distribution("markets", {"market": "no_such_module:PROFILE"})
    done = run("list")
    assert done.returncode == 0
    assert "market  broken: Profile 'market' of markets 1.0 cannot be imported" in done.stdout
    assert "executor  Document protection" in done.stdout
    listed = {one["name"]: one for one in json.loads(run("list", "--json").stdout)}
    assert "No module named 'no_such_module'" in listed["market"]["error"]
    assert (listed["market"]["distribution"], listed["market"]["phases"]) == (None, [])
    assert listed["executor"]["error"] is None
    assert listed["executor"]["distribution"].startswith("trunkline-profiles ")


def test_a_name_of_two_distributions_is_refused(
    tmp_path: Path, distribution: Write, run: Run
) -> None:
    module(tmp_path, "market")
    distribution("markets", {"market": "market:PROFILE"})
    distribution("stalls", {"market": "market:PROFILE"})
    with pytest.raises(DuplicateProfile) as refused:
        profiles.get("market")
    assert "is provided 2 times: by markets 1.0 and by stalls 1.0" in str(refused.value)
    assert "pip uninstall " in refused.value.hint
    assert "market  broken: Profile 'market' is provided 2 times" in run("list").stdout
    done = run("install", "market")
    assert (done.returncode, "Code: duplicate_profile" in done.stderr) == (1, True)


def test_an_unknown_name_is_refused_with_the_known_ones(run: Run) -> None:
    with pytest.raises(
        UnknownProfile, match="'market'; there are: clinical, executor, exports, studio"
    ) as refused:
        profiles.get("market")
    assert "trunkline profile list" in refused.value.hint
    for arguments in (("demo", "market"), ("validate", "market"), ("wake", "market")):
        done = run(*arguments)
        assert (done.returncode, "Code: unknown_profile" in done.stderr) == (1, True)


def test_without_the_distribution_the_hint_names_the_pip_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "entry_points", lambda **_: EntryPoints())
    with pytest.raises(UnknownProfile, match="no profiles are installed") as refused:
        profiles.get("clinical")
    assert (
        "pip install 'trunkline-profiles[clinical,executor,exports,studio]'" in refused.value.hint
    )
    assert profiles.names() == ()


def test_a_profile_alone_does_not_import_the_driver() -> None:
    """`trunkline profile list` describes profiles; nothing of that needs a database."""
    import subprocess  # noqa: PLC0415 - only here

    program = (
        "import sys; from trunkline import profiles; profiles.get('clinical');"
        " sys.exit('psycopg' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
