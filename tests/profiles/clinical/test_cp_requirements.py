"""Every scenario of the clinical system is named by a test of this folder.

That every requirement is named is looked at in tests/unit/test_requirements_covered.py.
"""

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent

# Some numbers are not in use: they were merged with requirements.
SCENARIOS = {f"CP-S{number:02}" for number in (1, 4, 6, 7, 8, 9, 10, 11, 12)}


def named() -> set[str]:
    found: set[str] = set()
    for path in HERE.rglob("test_*.py"):
        if path == Path(__file__):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found |= set(re.findall(r"CP-S\d{2}", ast.get_docstring(node) or ""))
    return found


def test_every_scenario_is_named_by_a_test() -> None:
    assert sorted(SCENARIOS - named()) == []
