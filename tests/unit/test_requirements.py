"""The register of requirements and the tests name the same ids, and the sources name none."""

import re
from pathlib import Path

import pytest

from tools.generate_requirements import ID, Place, System, ids_in, naming_tests, problems, register

ROOT = Path(__file__).parents[2]
# `trunkline profile validate executor` reports each of its tests by this id.
REPORTED = "profiles/src/trunkline_profiles/executor/sql/validate/tests.sql"
# What design documents are numbered by; readers of the sources do not have them.
DESIGN_ID = re.compile(rf"{ID.pattern}|\b(?:decision|conflict|issue) #?\d+\b")


def test_a_test_names_requirements_in_its_name_its_docstring_or_its_first_line(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "tests" / "claim"
    folder.mkdir(parents=True)
    (folder / "takes_one.sql").write_text("-- AB-01, AB-S02: one.\n-- AB-09\n")
    (folder / "test_more.py").write_text(
        '"""A file (AB-03 to AB-05)."""\n\n'
        "def test_ab_06_in_the_name(): ...\n\n"
        "async def test_in_the_docstring():\n"
        '    """overview 6.10: so."""\n'
        "    # AB-09\n\n"
        'def helper():\n    """AB-09"""\n\n'
        "def test_at_10_in_words(): ...\n"
    )
    (folder / "conftest.py").write_text('"""AB-09"""\n')
    found = naming_tests(tmp_path, {"AB": System("Ab", {})})
    sql, python = "tests/claim/takes_one.sql", "tests/claim/test_more.py"
    assert found == {
        "AB-01": {Place(sql, "claim/takes_one")},
        "AB-S02": {Place(sql, "claim/takes_one")},
        "AB-03": {Place(python, "test_more.py")},
        "AB-04": {Place(python, "test_more.py")},
        "AB-05": {Place(python, "test_more.py")},
        "AB-06": {Place(python, "test_ab_06_in_the_name")},
        "overview 6.10": {Place(python, "test_in_the_docstring")},
    }


@pytest.mark.parametrize("text", ["SHA-256", "UTF-16", "TL-1", "X-RateLimit-10", "2026-10"])
def test_other_words_are_no_ids(text: str) -> None:
    assert ids_in(text) == set()


def test_an_id_that_is_not_registered_is_a_problem() -> None:
    tests = {"AB-01": {Place("tests/a/test_a.py", "test_a")}}
    assert problems({}, tests) == ["AB-01 is not registered, but named by tests/a/test_a.py"]


def test_a_registered_id_without_a_test_is_a_problem() -> None:
    found = problems({"AB": System("Ab", {"AB-01": "…"})}, {})
    assert found == ["AB-01 is registered, but not named by a test in tests or profiles/tests"]


def test_a_system_with_a_folder_of_tests_has_one_for_each_id_there() -> None:
    systems = {"AB": System("Ab", {"AB-01": "…", "AB-02": "…"}, "tests/ab")}
    tests = {
        "AB-01": {Place("tests/ab/test_a.py", "test_a")},
        "AB-02": {Place("tests/abc/test_a.py", "test_a")},
    }
    assert problems(systems, tests) == ["AB-02 is registered, but not named by a test in tests/ab"]


def test_every_requirement_of_the_clinical_profile_has_a_test_function_of_its_name() -> None:
    systems = register()
    tests = naming_tests(ROOT, systems)
    missing = [
        identifier
        for identifier in systems["CP"].ids
        if re.fullmatch(r"CP-\d+", identifier)
        and not any(
            test.name.startswith(f"test_cp_{identifier.removeprefix('CP-')}_")
            for test in tests[identifier]
        )
    ]
    assert missing == []


def test_the_sources_name_no_requirement() -> None:
    """Sources give the reason in words; docs/requirements.md leads from an id to its tests."""
    found = [
        f"{name}:{number}: {identifier[0]}"
        for folder in ("src", "profiles/src")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in {".py", ".sql", ".md", ".json", ".toml", ".txt"}
        and (name := path.relative_to(ROOT).as_posix()) != REPORTED
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        for identifier in DESIGN_ID.finditer(line)
    ]
    assert found == []


def test_only_values_that_validation_reports_are_ids_of_requirements() -> None:
    lines = [line for line in (ROOT / REPORTED).read_text().splitlines() if ID.search(line)]
    assert len(lines) == 5
    assert all(re.fullmatch(r"  requirement := 'RC-\d\d';", line) for line in lines)
