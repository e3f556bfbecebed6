"""Both distributions as users get them: built, installed outside the checkout, and used."""

from __future__ import annotations

import json
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.support.databases import Database
from tests.support.environments import ROOT, Environment, build
from tests.support.servers import majors

PROFILES = ROOT / "profiles"
SOURCES = {
    "trunkline": ROOT / "src" / "trunkline",
    "trunkline_profiles": PROFILES / "src" / "trunkline_profiles",
}


def project(folder: Path) -> dict[str, object]:
    content = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    found: dict[str, object] = content["project"]
    return found


def test_the_profiles_pin_the_version_of_trunkline() -> None:
    ours, theirs = project(ROOT), project(PROFILES)
    assert theirs["version"] == ours["version"]
    assert theirs["dependencies"] == [f"trunkline=={ours['version']}"]


@pytest.mark.parametrize("name", ["LICENSE", "NOTICE"])
def test_both_have_the_same_licence(name: str) -> None:
    assert (PROFILES / name).read_text() == (ROOT / name).read_text()


def test_the_core_carries_nothing_for_single_profiles() -> None:
    extras = project(PROFILES)["optional-dependencies"]
    assert isinstance(extras, dict)
    assert set(extras) == {"clinical", "executor", "exports", "studio"}
    packages = [name for needed in extras.values() for name in needed]
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert [name for name in packages if name in text] == []


def sources(package: str) -> set[str]:
    """Everything that a wheel must have of a package, SQL and catalogues included."""
    folder = SOURCES[package]
    return {
        path.relative_to(folder.parent).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.slow
def test_both_distributions_work_outside_the_checkout(database: Database, tmp_path: Path) -> None:
    if database.server.major != majors()[-1]:
        pytest.skip("packaging is the same on every server; the newest is enough")
    core_wheel, core_sdist = build(ROOT, tmp_path / "dist")
    wheel, sdist = build(PROFILES, tmp_path / "dist")
    _sdist_builds_the_same(core_sdist, core_wheel, tmp_path)
    _sdist_builds_the_same(sdist, wheel, tmp_path)

    clean = Environment(tmp_path / "clean")
    clean.install(core_wheel)
    alone = clean.run("trunkline", "profile", "list")
    assert alone.stdout.startswith("No profiles are installed.")
    missing = clean.run("trunkline", "profile", "demo", "clinical")
    assert missing.returncode == 1
    assert "Code: unknown_profile" in missing.stderr
    assert "pip install 'trunkline-profiles[clinical,executor,exports,studio]'" in missing.stderr

    clean.install(wheel)
    where = clean.run("python", "-c", "import trunkline_profiles as p; print(p.__file__)")
    assert where.stdout.startswith(str(tmp_path))
    listed = json.loads(clean.run("trunkline", "profile", "list", "--json").stdout)
    provider = f"trunkline-profiles {project(PROFILES)['version']}"
    assert [(one["name"], one["distribution"], one["error"]) for one in listed] == [
        ("clinical", provider, None),
        ("executor", provider, None),
        ("exports", provider, None),
        ("studio", provider, None),
    ]
    dsn = {"TRUNKLINE_DSN": database.dsn}
    for name in ("clinical", "executor", "exports", "studio"):
        done = clean.run("trunkline", "profile", "install", name, "--all", env=dsn)
        assert done.returncode == 0, done.stderr
    checked = clean.run("trunkline", "profile", "validate", "executor", env=dsn)
    assert checked.stdout.count("passed") == 5, checked.stderr
    verified = clean.run("trunkline", "schema", "verify", env=dsn)
    assert verified.returncode == 0, verified.stdout + verified.stderr


def _sdist_builds_the_same(sdist: Path, wheel: Path, folder: Path) -> None:
    """A wheel has all sources, and one that is built from the sdist has the same files."""
    package = wheel.name.partition("-")[0]
    names = set(zipfile.ZipFile(wheel).namelist())
    assert sources(package) <= names
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (again,) = build(
        folder / "unpacked" / sdist.name.removesuffix(".tar.gz"), folder / package, "wheel"
    )
    assert set(zipfile.ZipFile(again).namelist()) == names
