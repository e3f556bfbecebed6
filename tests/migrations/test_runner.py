"""Installing and upgrading: one transaction, one installer at a time, never backwards."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import psycopg
import pytest

from tests.migrations.tiny import FOUNDATION, HEADER, SECOND, engine
from trunkline.errors import (
    DatabaseUnreachable,
    MigrationChanged,
    SchemaChangeFailed,
    SchemaLocked,
    SchemaMissing,
    SchemaNewerThanClient,
)
from trunkline.schema import plan
from trunkline.schema.plan import Options
from trunkline.schema.runner import Report, bring_up_to_date

FIRST = {"0001_foundation.sql": FOUNDATION}
BOTH = FIRST | {"0002_sizes.sql": SECOND}


def install(dsn: str, root: Path, *, lock_timeout: float = 10) -> Report:
    options = Options(root=root, lock_timeout=lock_timeout)
    return bring_up_to_date(dsn, options, from_nothing=True)


def upgrade(dsn: str, root: Path, *, lock_timeout: float = 10) -> Report:
    options = Options(root=root, lock_timeout=lock_timeout)
    return bring_up_to_date(dsn, options, from_nothing=False)


def versions(dsn: str) -> list[tuple[int, str, bool]]:
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "select version, name, breaking from trunkline_internal.schema_migrations order by 1"
        )
        return [(version, name, breaking) for version, name, breaking in rows]


def test_install_records_what_it_applied(empty: str, tmp_path: Path) -> None:
    root = engine(tmp_path, BOTH)
    report = install(empty, root)
    assert (report.before, report.version) == (0, 2)
    assert [migration.label for migration in report.applied] == ["0001_foundation", "0002_sizes"]
    assert versions(empty) == [(1, "foundation", False), (2, "sizes", False)]


def test_second_install_applies_no_migration(empty: str, tmp_path: Path) -> None:
    root = engine(tmp_path, BOTH)
    install(empty, root)
    report = install(empty, root)
    assert (report.before, report.version, report.applied) == (2, 2, ())


def test_upgrade_applies_what_is_missing(empty: str, tmp_path: Path) -> None:
    install(empty, engine(tmp_path / "old", FIRST))
    report = upgrade(empty, engine(tmp_path / "new", BOTH))
    assert (report.before, report.version) == (1, 2)
    assert [migration.label for migration in report.applied] == ["0002_sizes"]


def test_upgrade_refuses_a_database_without_schema(empty: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaMissing) as refused:
        upgrade(empty, engine(tmp_path, BOTH))
    assert "trunkline schema install" in refused.value.hint


def test_breaking_migration_is_flagged(empty: str, tmp_path: Path) -> None:
    breaking = "-- why: a test\n-- breaking: yes\ndrop table trunkline_internal.things;\n"
    report = install(empty, engine(tmp_path, FIRST | {"0002_drop.sql": breaking}))
    assert report.breaking
    assert versions(empty) == [(1, "foundation", False), (2, "drop", True)]


def test_edited_migration_is_refused_by_name(empty: str, tmp_path: Path) -> None:
    install(empty, engine(tmp_path / "old", BOTH))
    edited = engine(tmp_path / "new", BOTH | {"0002_sizes.sql": SECOND + "select 1;\n"})
    with pytest.raises(MigrationChanged) as refused:
        upgrade(empty, edited)
    assert refused.value.migration == "0002_sizes"


def test_newer_database_is_never_downgraded(empty: str, tmp_path: Path) -> None:
    install(empty, engine(tmp_path / "new", BOTH))
    with pytest.raises(SchemaNewerThanClient) as refused:
        upgrade(empty, engine(tmp_path / "old", FIRST))
    assert refused.value.code == "schema_newer_than_client"
    assert "0002_sizes" in refused.value.message
    assert [version for version, _, _ in versions(empty)] == [1, 2]


def test_failed_migration_leaves_nothing(empty: str, tmp_path: Path) -> None:
    broken = HEADER + "create table trunkline_internal.more ();\nselect nonsense;\n"
    with pytest.raises(SchemaChangeFailed) as failed:
        install(empty, engine(tmp_path, FIRST | {"0002_broken.sql": broken}))
    assert (failed.value.step, failed.value.line) == ("migrations/0002_broken.sql", 4)
    assert "nonsense" in failed.value.message
    with psycopg.connect(empty) as connection:
        found = connection.execute("select to_regnamespace('trunkline_internal')").fetchone()
    assert found == (None,)


def test_upgrade_does_not_queue_behind_a_reader(empty: str, tmp_path: Path) -> None:
    install(empty, engine(tmp_path / "old", FIRST))
    new = engine(tmp_path / "new", BOTH)
    with psycopg.connect(empty) as reader:
        reader.execute("select from trunkline_internal.things")
        with pytest.raises(SchemaLocked) as refused:
            upgrade(empty, new, lock_timeout=0.05)
        assert "migrations/0002_sizes.sql" in refused.value.message
    assert upgrade(empty, new).version == 2


def test_installer_does_not_queue_for_ever_behind_another(empty: str, tmp_path: Path) -> None:
    root = engine(tmp_path, FIRST)
    with psycopg.connect(empty) as other:
        for step in plan.opening(Options(root=root)):
            other.execute(step.text.encode())
        with pytest.raises(SchemaLocked):
            install(empty, root, lock_timeout=0.05)
        other.rollback()
    assert install(empty, root).version == 1


def test_parallel_installers_of_one_database_take_turns(empty: str, tmp_path: Path) -> None:
    root = engine(tmp_path, BOTH)
    ready = Barrier(4)

    def together(_: int) -> Report:
        ready.wait()
        return install(empty, root, lock_timeout=60)

    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(together, range(4)))
    assert sorted(len(report.applied) for report in reports) == [0, 0, 0, 2]
    assert [version for version, _, _ in versions(empty)] == [1, 2]


def test_unreachable_server_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnreachable) as refused:
        install(f"host={tmp_path} dbname=nowhere", engine(tmp_path, FIRST))
    assert "TRUNKLINE_DSN" in refused.value.hint


def test_objects_belong_to_the_owner_and_the_session_keeps_nothing(
    empty: str, tmp_path: Path
) -> None:
    install(empty, engine(tmp_path, BOTH))
    with psycopg.connect(empty) as connection:
        owners = connection.execute(
            "select distinct pg_get_userbyid(relowner) from pg_class"
            " where relnamespace = 'trunkline_internal'::regnamespace"
        ).fetchall()
        applied_by = connection.execute(
            "select distinct applied_by from trunkline_internal.schema_migrations"
        ).fetchall()
    assert owners == [("trunkline_owner",)]
    assert applied_by == [("trunkline_installer",)]
