"""A project of one function, half tested, on which the mutation tool can be tried in seconds."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Any

from tools.mutants.project import Domain, Project

SOURCE = """\
def discount(amount: int, member: bool) -> int:
    if member and amount > 100:
        return amount - 10
    return amount
"""
# Nobody tries an amount of exactly 100, nor a small amount of a member.
TESTS = """\
from shop.till import discount

def test_members_pay_less():
    assert discount(200, True) == 190

def test_others_pay_all():
    assert discount(200, False) == 200
"""


def make(root: Path, tests: str = TESTS, **options: Any) -> Project:
    """Write the project into an empty folder."""
    write(root, "src/shop/__init__.py", "")
    write(root, "src/shop/till.py", SOURCE)
    write(root, "tests/till/test_till.py", tests)
    write(root, "pyproject.toml", "[tool.pytest.ini_options]\n")
    command = ["git", "init", "-q", str(root)]
    subprocess.run(command, check=True)
    return Project(
        root=root,
        package="shop",
        domains={"till": Domain(["src/shop"], ["tests/till"])},
        # The entry point of our own plugin is visible, but its package is not.
        options=["-p", "no:trunkline"],
        **options,
    )


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def content(root: Path) -> dict[str, str]:
    """All files of a tree but git's own, with a hash of each."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }
