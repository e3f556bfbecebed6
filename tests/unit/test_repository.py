"""What is committed names no machine and no registry, and what is public is listed."""

import re
from pathlib import Path

import trunkline

ROOT = Path(__file__).parents[2]


def test_the_lock_names_no_host_and_every_package_has_a_hash() -> None:
    text = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^\s*--(?!hash=)", text, re.MULTILINE)
    packages = re.findall(
        r"^[a-z0-9][^\n]*==(?:[^\n]*\\\n\s+--hash=sha256:[0-9a-f]{64})", text, re.MULTILINE
    )
    assert len(packages) == len(re.findall(r"^[a-z0-9].*==", text, re.MULTILINE)) > 30


def test_the_public_names_are_sorted_and_exist() -> None:
    assert list(trunkline.__all__) == sorted(trunkline.__all__)
    assert [name for name in trunkline.__all__ if not hasattr(trunkline, name)] == []


def test_the_version_is_the_project_s() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{trunkline.__version__}"' in project
