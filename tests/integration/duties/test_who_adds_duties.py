"""A duty runs with the owner's rights: who may add one, and whose functions are refused."""

import psycopg
import pytest

from tests.integration.duties.own import App
from tests.support.databases import Database


@pytest.fixture
def app(database: Database) -> App:
    return App(database)


@pytest.mark.parametrize("role", ["operator", "worker", "producer", "reader"])
@pytest.mark.parametrize(
    "call", ["add_duty('mine', 'app.count_runs', '1 hour')", "remove_duty('count')"]
)
def test_only_members_of_the_owner_add_and_remove_duties(app: App, role: str, call: str) -> None:
    app.add("count", "app.count_runs")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        app.database.connect(f"trunkline_{role}").execute(f"select trunkline.{call}".encode())


@pytest.mark.parametrize("role", ["worker", "producer", "reader"])
def test_only_operators_disable_duties(app: App, role: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        app.database.connect(f"trunkline_{role}").execute(
            "select trunkline.enable_duty('promote', false)"
        )


@pytest.mark.parametrize(
    ("statement", "function", "rule"),
    [
        ("", None, "a name with its schema"),
        ("", "", "a name with its schema"),
        ("", "count_runs", "a name with its schema"),
        ("", "app.count_runs()", "a name with its schema"),
        ("", "app.count_runs; drop schema app", "a name with its schema"),
        ("", "app.nothing", "a function that exists"),
        ("", "nowhere.count_runs", "a function that exists"),
        (
            "create function app.count_runs(n integer) returns void language sql as 'select'",
            "app.count_runs",
            "the only function of its name",
        ),
        (
            "create function app.f(a text, b text default '') returns void language sql as ''",
            "app.f",
            "a function without required arguments",
        ),
        (
            "create function app.f(variadic integer[]) returns integer language sql as 'select 1'",
            "app.f",
            "a function without required arguments",
        ),
        ("create procedure app.f() language sql as 'select'", "app.f", "a function, not a"),
        (
            "create aggregate app.f(*) (sfunc = int8inc, stype = int8, initcond = 0)",
            "app.f",
            "a function, not a",
        ),
        (
            "create function app.f() returns trigger language plpgsql as 'begin end'",
            "app.f",
            "a function that is not made for triggers",
        ),
        ("revoke usage on schema app from trunkline_owner", "app.count_runs", "executable by"),
        (
            "revoke execute on function app.count_runs() from public",
            "app.count_runs",
            "executable by",
        ),
        ("grant create on schema app to public", "app.count_runs", "in a schema in which only"),
        (
            "grant create on schema app to trunkline_operator",
            "app.count_runs",
            "in a schema in which only",
        ),
    ],
)
def test_a_function_that_cannot_be_a_duty_is_refused(
    app: App, statement: str, function: str | None, rule: str
) -> None:
    if statement:
        app.installer.execute(statement.encode())
    assert app.refused("mine", function)["must_be"].startswith(rule)
    assert "mine" not in app.run_all()


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ("alter function app.count_runs() owner to trunkline_operator", "owned by a superuser"),
        ("alter schema app owner to trunkline_operator", "in a schema in which only"),
    ],
)
def test_a_function_that_others_can_replace_is_neither_added_nor_run(
    app: App, change: str, rule: str
) -> None:
    """Also one that was added before: the role that owns it may have lost the owner's rights."""
    app.add("count", "app.count_runs")
    app.database.superuser().execute(change.encode())
    assert app.refused("mine", "app.count_runs")["must_be"].startswith(rule)
    assert rule in (app.run_all()["count"][2] or "")
    assert app.database.superuser().execute("select is_called from app.runs").fetchone() == (False,)


def test_a_function_of_the_database_owner_in_schema_public_is_accepted(app: App) -> None:
    """Schema public belongs to pg_database_owner, which is the installer here."""
    app.installer.execute("create function public.f() returns integer language sql as 'select 1'")
    app.add("f", "public.f")
    assert app.run_all()["f"] == (True, 1, None)


@pytest.mark.parametrize(
    ("duty", "every", "argument"),
    [
        ("", "1 hour", "p_duty"),
        ("Count", "1 hour", "p_duty"),
        ("a b", "1 hour", "p_duty"),
        ("a" * 64, "1 hour", "p_duty"),
        ("mine", "0", "p_every"),
        ("mine", "-1 second", "p_every"),
        ("mine", None, "p_every"),
    ],
)
def test_a_bad_name_or_interval_is_refused(
    app: App, duty: str, every: str | None, argument: str
) -> None:
    assert app.refused(duty, "app.count_runs", every)["argument"] == argument
