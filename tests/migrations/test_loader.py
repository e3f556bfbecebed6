"""The files of the engine are found, ordered and refused when they are malformed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.migrations.tiny import FOUNDATION, HEADER, SECOND, engine
from trunkline import sql
from trunkline.errors import MalformedSql


def test_shipped_migrations_are_numbered_and_explained() -> None:
    shipped = sql.migrations()
    assert [migration.number for migration in shipped] == list(range(1, len(shipped) + 1))
    assert all(len(migration.why.split()) >= 3 for migration in shipped)


def test_shipped_objects_have_a_file_each() -> None:
    shipped = sql.repeatables()
    assert "schema_version" in {one.name for one in shipped if one.kind == "api"}
    assert len({one.name for one in shipped}) == len(shipped)
    for one in shipped:
        schemas = {"internal": "_internal", "api": "", "views": "(?:_internal)?"}
        made = rf"create or replace (?:function|view) trunkline{schemas[one.kind]}\.{one.name}\b"
        assert len(re.findall(made, one.text)) == 1, one.path
        assert one.text.count("create or replace") == 1, one.path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("0001_first.sql", "create table t ();\n"),
        ("0001_first.sql", "-- why: reason\ncreate table t ();\n"),
        ("0001_first.sql", "-- why: \n-- breaking: no\n"),
        ("0001_first.sql", "-- why: reason\n-- breaking: maybe\n"),
        ("0001_first.sql", "\n" + HEADER),
        ("1_first.sql", HEADER),
        ("0001-first.sql", HEADER),
        ("0001_First.sql", HEADER),
    ],
)
def test_malformed_migration_is_refused_by_name(tmp_path: Path, name: str, text: str) -> None:
    root = engine(tmp_path, {name: text})
    with pytest.raises(MalformedSql) as refused:
        sql.migrations(root)
    assert refused.value.path == f"migrations/{name}"
    assert name in refused.value.message


@pytest.mark.parametrize("names", [["0002_a.sql"], ["0001_a.sql", "0003_b.sql"]])
def test_gap_in_the_numbers_is_refused(tmp_path: Path, names: list[str]) -> None:
    root = engine(tmp_path, dict.fromkeys(names, HEADER))
    with pytest.raises(MalformedSql, match=names[-1]):
        sql.migrations(root)


def test_two_migrations_with_one_number_are_refused(tmp_path: Path) -> None:
    root = engine(tmp_path, {"0001_a.sql": HEADER, "0001_b.sql": HEADER})
    with pytest.raises(MalformedSql, match="0001_b"):
        sql.migrations(root)


def test_a_folder_is_one_migration_in_the_order_of_its_files(tmp_path: Path) -> None:
    root = engine(
        tmp_path,
        {"0001_all/02_b.sql": "select 2;\n", "0001_all/01_a.sql": HEADER, "0002_c.sql": HEADER},
    )
    folder, file = sql.migrations(root)
    assert (folder.label, folder.why, folder.breaking) == ("0001_all", "a test", False)
    assert folder.files == (
        ("migrations/0001_all/01_a.sql", HEADER),
        ("migrations/0001_all/02_b.sql", "select 2;\n"),
    )
    assert file.files == (("migrations/0002_c.sql", HEADER),)
    before = folder.sha256
    (root / "migrations" / "0001_all" / "02_b.sql").write_text("select 3;\n", encoding="utf-8")
    assert sql.migrations(root)[0].sha256 != before


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("0001_all/01_a.sql", "migrations/0001_all/01_a.sql"),
        ("1_all/01_a.sql", "migrations/1_all"),
        ("0001_all.sql/01_a.sql", "migrations/0001_all.sql"),
        ("0001_all/a.txt", "migrations/0001_all"),
    ],
)
def test_malformed_folder_is_refused_by_name(tmp_path: Path, name: str, wrong: str) -> None:
    with pytest.raises(MalformedSql) as refused:
        sql.migrations(engine(tmp_path, {name: "select 1;\n"}))
    assert refused.value.path == wrong


def test_header_is_read(tmp_path: Path) -> None:
    text = "-- why: queues are gone\n-- breaking: yes\nselect 1;\n"
    root = engine(tmp_path, {"0001_foundation.sql": FOUNDATION, "0002_drop_queues.sql": text})
    migration = sql.migrations(root)[1]
    assert (migration.number, migration.name) == (2, "drop_queues")
    assert (migration.why, migration.breaking) == ("queues are gone", True)
    assert migration.label == "0002_drop_queues"


def test_checksum_does_not_depend_on_line_ends(tmp_path: Path) -> None:
    unix = engine(tmp_path / "unix", {"0001_a.sql": SECOND})
    windows = engine(tmp_path / "windows", {"0001_a.sql": SECOND})
    (windows / "migrations" / "0001_a.sql").write_bytes(SECOND.replace("\n", "\r\n").encode())
    assert sql.migrations(unix)[0].sha256 == sql.migrations(windows)[0].sha256


def test_objects_load_internal_first_then_functions_then_views(tmp_path: Path) -> None:
    for path in (
        "b/api/one.sql",
        "a/views/two.sql",
        "b/internal/three.sql",
        "a/api/four.sql",
        "a/internal/five.sql",
    ):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("select 1;\n", encoding="utf-8")
    assert [one.path for one in sql.repeatables(tmp_path)] == [
        "a/internal/five.sql",
        "b/internal/three.sql",
        "a/api/four.sql",
        "b/api/one.sql",
        "a/views/two.sql",
    ]


def test_object_with_a_wrong_file_name_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "queue" / "api"
    folder.mkdir(parents=True)
    (folder / "My-Function.sql").write_text("select 1;\n", encoding="utf-8")
    with pytest.raises(MalformedSql, match=r"queue/api/My-Function\.sql"):
        sql.repeatables(tmp_path)
