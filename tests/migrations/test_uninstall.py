"""Nothing of the user's own is dropped with the schema without a word."""

from __future__ import annotations

import json

import pytest

from tests.cli.driving import Cli
from tests.support.databases import Database
from trunkline.errors import SchemaInUse

_OBJECTS = """
create schema shop;
create view shop.waiting as select task, count(*) from trunkline.jobs group by task;
create view shop.busy as select * from shop.waiting;
create table shop.answers (id integer, version trunkline.schema_version_info);
create table shop.orders (id integer primary key, at timestamptz default trunkline.clock());
create table shop.notes (id integer, task text references trunkline_internal.tasks);
create function shop.seen() returns trigger language plpgsql as 'begin return new; end';
create trigger seen after insert on trunkline_internal.events
  for each row execute function shop.seen();
alter table shop.orders enable row level security;
create policy own on shop.orders using (trunkline.tenant_scope() is null);
create function shop.version() returns trunkline.schema_version_info language sql
  return (select row(1, 1, 1)::trunkline.schema_version_info);
create view shop.ids as select id from shop.answers;
create table shop.bystander (id integer);
"""
_NAMED = {
    "column version of table shop.answers",
    "constraint notes_task_fkey on table shop.notes",
    "default value for column at of table shop.orders",
    "function shop.version()",
    "policy own on table shop.orders",
    "trigger seen on table trunkline_internal.events",
    "view shop.busy",
    "view shop.waiting",
}


@pytest.fixture
def cli(database: Database) -> Cli:
    # As the superuser, who owns what the tests add.
    database.superuser().execute(_OBJECTS.encode())
    return Cli(database.superuser_dsn)


def test_uninstall_names_what_depends_and_changes_nothing(cli: Cli, database: Database) -> None:
    with pytest.raises(SchemaInUse) as refused:
        cli.run("schema", "uninstall", "--keep-roles", "--yes")
    listed = set(refused.value.message.removeprefix("The schema is used by ").split(", "))
    assert listed == _NAMED
    assert "--cascade" in refused.value.hint
    row = database.superuser().execute("select count(*) from shop.waiting").fetchone()
    assert row == (0,)


@pytest.mark.parametrize("roles", [(), ("--keep-roles",)], ids=["all", "keep roles"])
def test_cascade_drops_dependent_objects_and_reports_them(
    cli: Cli, database: Database, roles: tuple[str, ...]
) -> None:
    done = cli.run("schema", "uninstall", *roles, "--cascade", "--yes", "--json")
    assert done.exit_code == 0
    assert set(json.loads(done.stdout)["dropped_dependants"]) == _NAMED
    rows = database.superuser().execute(
        "select relname from pg_class where relnamespace = 'shop'::regnamespace and relkind = 'r'"
    )
    assert {name for (name,) in rows} == {"answers", "bystander", "notes", "orders"}
    # A view of other columns than the one that goes is no dependant, and stays.
    assert database.superuser().execute("select count(*) from shop.ids").fetchone() == (0,)


def test_objects_that_need_nothing_of_ours_are_no_reason(database: Database) -> None:
    database.superuser().execute("create table public.mine (id integer)")
    done = Cli(database.dsn).run("schema", "uninstall", "--keep-roles", "--yes")
    assert done.exit_code == 0, done.output
    assert "Dropped" not in done.stdout


def test_functions_of_duties_stay(database: Database) -> None:
    database.connect().execute(
        "create function public.tidy() returns integer language sql as 'select 1';"
        "select trunkline.add_duty('tidy', 'public.tidy', '1 hour')"
    )
    cli = Cli(database.dsn)
    assert cli.run("schema", "uninstall", "--keep-roles", "--yes").exit_code == 0
    assert database.connect().execute("select public.tidy()").fetchone() == (1,)
    cli.text("schema", "install")
    assert "tidy" not in {row["duty"] for row in cli.json("duties", "list")}


def test_foreign_objects_in_the_schema_of_a_profile_are_named(database: Database) -> None:
    # As the installer, to whom the user's own objects usually belong.
    cli = Cli(database.dsn)
    database.superuser().execute("grant create on schema public to public")
    done = cli.run("profile", "install", "executor", "--schema", "public")
    assert done.exit_code == 0, done.output
    database.connect().execute("create view public.my_report as select * from trunkline.jobs")
    expected = ["view public.my_report", "profile in schema public"]
    with pytest.raises(SchemaInUse, match=", ".join(expected)):
        cli.run("schema", "uninstall", "--keep-roles", "--yes")
    done = cli.run("schema", "uninstall", "--keep-roles", "--cascade", "--yes", "--json")
    assert json.loads(done.stdout)["dropped_dependants"] == expected
