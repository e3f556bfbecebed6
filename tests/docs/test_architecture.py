"""ARCHITECTURE.md speaks of things that exist, and one invariant is checked here: nothing waits."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

from tests.support.databases import Database

ROOT = Path(__file__).resolve().parents[2]


def invariants() -> list[list[str]]:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (I\d+) \| (.+?) \| (.+?) \| (.+?) \|$", text, re.MULTILINE)
    return [list(row) for row in rows]


def test_every_invariant_names_objects_and_tests_that_exist(database: Database) -> None:
    assert [row[0] for row in invariants()] == [
        "I1",
        "I2",
        "I3",
        "I4",
        "I5",
        "I6",
        "I8",
        "I9",
        "I10",
    ]
    with database.superuser() as connection:
        known = {
            name
            for (name,) in connection.execute(
                """
                select proname from pg_proc where pronamespace::regnamespace::text like 'trunkline%'
                union
                select conname from pg_constraint
                where connamespace::regnamespace::text like 'trunkline%'
                union
                select relname from pg_class
                where relnamespace::regnamespace::text like 'trunkline%'
                union
                select polname from pg_policy
                """
            )
        }
    for number, _, held, tried in invariants():
        objects = re.findall(r"`([a-z_]+)`", held)
        tests = re.findall(r"`(tests/[^`]+)`", tried)
        assert objects, number
        assert tests, number
        assert set(objects) <= known, number
        assert all((ROOT / path).exists() for path in tests), number


def test_paths_and_links_of_the_documents_exist() -> None:
    for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        paths = re.findall(r"\]\(([^)#:]+)\)", text) + re.findall(r"`(src/[a-z_/.]+)`", text)
        missing = [path for path in paths if not (ROOT / path).exists()]
        assert missing == [], name


def test_nothing_in_the_engine_sleeps_or_leaves_the_server() -> None:
    """I10: no function of the engine sleeps, opens a connection or runs a program."""
    forbidden = re.compile(r"\b(pg_sleep\w*|dblink\w*|http_\w+|pg_read_file|copy\s.+program)\b")
    files = sorted((ROOT / "src" / "trunkline" / "sql").rglob("*.sql"))
    assert len(files) > 100
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in files
        for match in forbidden.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_every_verb_of_the_contributing_guide_is_a_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    verbs = set(re.findall(r"`make ([a-z-]+)`", text))
    assert {"setup", "check", "test", "demo", "bench"} <= verbs
    assert all(re.search(rf"^{verb}:", makefile, re.MULTILINE) for verb in verbs)


def contracts() -> list[dict[str, Any]]:
    text = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = text["tool"]["importlinter"]["contracts"]
    return found


def layer_rows() -> list[list[str]]:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("## Layers")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| `src/")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def imports_of(layer: str) -> set[str]:
    """Return the other layers that a layer imports itself."""
    found: set[str] = set()
    for path in (ROOT / "src" / "trunkline" / layer).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                names = [f"{node.module}.{name.name}" for name in node.names]
            found |= {name.split(".")[1] for name in names if name.startswith("trunkline.")}
    return found - {layer}


def test_every_layer_imports_only_what_the_table_allows() -> None:
    """What a cell names, and what the layers that it names may use."""
    allowed = {
        name.strip("`").rpartition("/")[2]: set(re.findall(r"\w+", cell))
        for name, _, cell in layer_rows()
    }
    allowed["errors"] -= {"nothing", "of", "ours"}
    layers = {*allowed}
    for layer in layers - {"cli"}:
        assert allowed[layer] <= layers, layer
        reached: set[str] = set()
        while reached != (more := reached | allowed[layer] | _allowed(reached, allowed)):
            reached = more
        assert imports_of(layer) & layers <= reached, layer


def _allowed(layers: set[str], allowed: dict[str, set[str]]) -> set[str]:
    return set().union(*(allowed[name] for name in layers))


def test_the_table_names_what_the_command_line_may_not_import() -> None:
    (contract,) = (found for found in contracts() if found["name"].startswith("The command line"))
    assert "ignore_imports" not in contract
    forbidden = {name.removeprefix("trunkline.") for name in contract["forbidden_modules"]}
    cell = layer_rows()[-1][-1]
    listed, _, of = cell.partition(" and `_async` and `_sync` of ")
    private = {
        f"{room}.{twin}"
        for room in re.findall(r"\w+", of.replace("and", ""))
        for twin in ("_async", "_sync")
    }
    assert forbidden == set(re.findall(r"`([a-z.]+)`", listed)) | private


def test_the_table_of_layers_is_the_contract_of_the_import_linter() -> None:
    """From the bottom to the top; packages of one layer are in any order."""
    (layers,) = (contract["layers"] for contract in contracts() if contract["type"] == "layers")
    levels = {
        name: level
        for level, names in enumerate(reversed(layers))
        for name in re.findall(r"trunkline\.(\w+)", names)
    }
    rows = [row[0] for row in layer_rows()]
    named = [name for row in rows for name in re.findall(r"`src/trunkline/(\w+)`", row)]
    assert sorted(named) == sorted(levels)
    assert named == sorted(named, key=lambda name: levels[name])
