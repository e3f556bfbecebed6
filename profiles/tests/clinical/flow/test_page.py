"""The page about the workers: its tables and lists are true."""

import re
from inspect import signature
from pathlib import Path

import pytest

from trunkline_profiles.clinical.handlers.chores import Chores
from trunkline_profiles.clinical.handlers.passes import PASSES
from trunkline_profiles.clinical.tasks import TYPES

ROOT = Path(__file__).parents[4]
PROFILES = ROOT / "profiles"
TEXT = (PROFILES / "docs" / "clinical-worker.md").read_text(encoding="utf-8")
SOURCE = PROFILES / "src" / "trunkline_profiles" / "clinical"


def rows() -> dict[str, list[str]]:
    """Rows of all tables by their first cell."""
    found = (line.strip("| ").split(" | ") for line in TEXT.splitlines() if line.startswith("| `"))
    return {cells[0].strip("`"): cells[1:] for cells in found}


def test_every_variable_is_on_the_page() -> None:
    """CP-66: and none that the code does not read."""
    code = "".join(
        (SOURCE / name).read_text(encoding="utf-8")
        for name in ("app.py", "__main__.py", "tasks.py", "handlers/providers.py")
    )
    read = set(re.findall(r'"((?:WORKER|TRUNKLINE_CLINICAL)_[A-Z]+(?:_[A-Z]+)*)"', code))
    read |= {f"TRUNKLINE_CLINICAL_URL_{name.upper()}" for name in Chores.PROVIDERS}
    read |= {"TRUNKLINE_CLINICAL_URL_NAME", "TRUNKLINE_CLINICAL_KEY_NAME", "TRUNKLINE_DSN"}
    table = TEXT[TEXT.index("| variable") : TEXT.index("Keys are")]
    assert set(re.findall(r"`([A-Z_]+)`", table)) == read


def test_every_code_of_a_refusal_is_on_the_page() -> None:
    """CP-83: structured errors, by stable codes."""
    files = ("security.py", "examine_pdf.py", "examine_picture.py")
    code = "".join((SOURCE / "handlers" / name).read_text(encoding="utf-8") for name in files)
    ways = r'(?:Rejected\(|Refused\(|"refused":|return)\s*"(\w+)",\s*(?:f?"|"message")'
    codes = sorted(set(re.findall(ways, code)))
    listed = TEXT[TEXT.index("stable\n  code:") : TEXT.index("- A pass calls")]
    assert re.findall(r"`(\w+)`", listed) == codes


@pytest.mark.parametrize("name", TYPES)
def test_every_type_is_on_the_page(name: str) -> None:
    """CP-10: with its record, or its payload."""
    told = rows()[name]
    if name in PASSES:
        assert told[-1] == f"`{PASSES[name].record}`"
    elif hasattr(Chores, name):
        named = set(signature(getattr(Chores, name)).parameters)
        # What the profile adds to every payload is nothing to pass.
        added = {"self", "ctx", "estimated_tokens", "endpoint"}
        assert set(re.findall(r"`(\w+)`", told[0])) == named - added
    else:
        assert name.startswith("fast_queue_")


def test_the_tools_are_those_that_tests_install() -> None:
    """CP-70: one list."""
    wanted = re.search(r"apt-get install --no-install-recommends (.*)", TEXT)
    assert wanted is not None
    script = (ROOT / "tools" / "system_packages.sh").read_text(encoding="utf-8")
    for package in wanted[1].split():
        assert re.search(rf"\b{package}\b", script), package
