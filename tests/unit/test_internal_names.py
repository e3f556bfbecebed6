"""Tests reach internal tables only through ``tests/support``.

So a renamed table or column changes the helpers and no test.
"""

from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[1]
_PROFILES = "profiles/tests"
_SCHEMA = "trunkline" + "_internal"

# Helpers, and tests of the installed schema itself.
_FOLDERS = ("support", "migrations")
# These tests are about the internal schema: who may touch it, what it has, how it is linted.
_SUBJECT = {
    "integration/catalog/test_hygiene.py",
    "integration/catalog/test_plpgsql_check.py",
    "integration/catalog/test_privileges.py",
    "integration/security/test_claims.py",
    "integration/security/test_second_wall.py",
    "profiles/tests/clinical/test_cp_plpgsql_check.py",
    "profiles/tests/clinical/test_cp_security.py",
    "profiles/tests/executor/test_phases.py",
    "profiles/tests/executor/test_walls.py",
    "sql/schema/has_the_indexes_that_hot_queries_need.sql",
    "unit/mutants/test_sites.py",
    "unit/test_job_row.py",
    "unit/test_sql_lint.py",
}


def _naming(root: Path) -> set[str]:
    """Return the test files that name the internal schema."""
    return {
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.suffix in {".py", ".sql"}
        and path.relative_to(root).parts[0] not in _FOLDERS
        and _SCHEMA in path.read_text(encoding="utf-8")
    }


def _all() -> set[str]:
    profiles = _naming(_TESTS.parent / _PROFILES)
    return _naming(_TESTS) | {f"{_PROFILES}/{name}" for name in profiles}


def test_no_other_test_names_the_internal_schema() -> None:
    assert _all() == _SUBJECT


@pytest.mark.parametrize("name", ["test_one.py", "flow/scene.py", "sql/claim/takes.sql"])
def test_a_file_that_names_it_is_found(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"select from {_SCHEMA}.waiting", encoding="utf-8")
    assert _naming(tmp_path) == {name}
