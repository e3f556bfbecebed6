"""The shipped engine with one migration more, as a later release would have it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

from tests.migrations.tiny import HEADER
from trunkline import sql
from trunkline.schema import plan
from trunkline.schema.plan import Options
from trunkline.schema.runner import Report, bring_up_to_date
from trunkline.schema.session import connect, run

__all__ = ["LATER", "engine_after", "install_only", "upgrade_to"]

# What migrations usually do: columns with and without a default in tables that have rows, changed
# rows, a new table, an index, and a constraint that existing rows must meet.
LATER = (
    HEADER
    + """
alter table trunkline_internal.waiting add column origin text;
alter table trunkline_internal.running add column origin text;
alter table trunkline_internal.finished add column origin text;
alter table trunkline_internal.dead add column origin text;
alter table trunkline_internal.tasks add column owner text not null default 'nobody';
alter table trunkline_internal.waiting add constraint waiting_origin_check check (origin <> '');
create index dead_by_task on trunkline_internal.dead (task);
update trunkline_internal.waiting set origin = 'before';
create table trunkline_internal.origins (origin text not null constraint origins_pkey primary key);
insert into trunkline_internal.settings (name, kind, default_value, description)
values ('origin', 'text', 'here', 'A setting of the later release.');
"""
)


def engine_after(folder: Path, later: str = LATER) -> Path:
    """Copy the shipped engine and add a migration; return its root."""
    with as_file(files(sql)) as shipped:
        shutil.copytree(shipped, folder, ignore=shutil.ignore_patterns("__pycache__"))
    number = len(sql.migrations()) + 1
    (folder / "migrations" / f"{number:04}_later.sql").write_text(later, encoding="utf-8")
    return folder


def upgrade_to(dsn: str, root: Path) -> Report:
    """Upgrade a database to that engine."""
    return bring_up_to_date(dsn, Options(root=root), from_nothing=False)


def install_only(dsn: str, migrations: Sequence[sql.Migration]) -> None:
    """Leave the tables as they are after these migrations, without any function."""
    with connect(dsn) as connection:
        for step in (*plan.opening(Options()), *plan.migrating(migrations)):
            run(connection, step)
