"""Each house rule catches a file that breaks it, and nothing else in that file."""

import pytest

from tools.sql_lint.__main__ import ENGINE, lint, lint_script

GOOD = """\
-- Gives one.
create or replace function trunkline.one(p_by integer)
returns integer
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_one constant integer := 1;
  v_sum integer;
  v_task trunkline_internal.tasks%rowtype;
begin
  with picked as (select t.task from trunkline_internal.tasks as t)
  select count(*) + p_by into v_sum from picked as p;
  select t.* into v_task from trunkline_internal.tasks as t for update of t;
  return v_sum + c_one + trunkline_internal.half(p_of => 2);
end;
$$;
comment on function trunkline.one(integer) is 'Gives one.';
"""
HELPER = """\
-- Gives half of a number.
create or replace function trunkline_internal.half(p_of integer)
returns integer
language sql
immutable
as $$ select pg_catalog.int4div(p_of, 2) $$;
comment on function trunkline_internal.half(integer) is 'Gives half of a number.';
"""
VIEW = """\
-- Shows all.
create or replace view trunkline.shown with (security_barrier = true) as
select t.task from trunkline_internal.tasks as t;
comment on view trunkline.shown is 'Shows all.';
"""


def found(path: str, text: str) -> list[tuple[int, str]]:
    return [(finding.line, finding.message) for finding in lint(path, text)]


@pytest.mark.parametrize(
    ("path", "text"),
    [("a/api/one.sql", GOOD), ("a/internal/half.sql", HELPER), ("a/views/shown.sql", VIEW)],
)
def test_good_files_pass(path: str, text: str) -> None:
    assert found(path, text) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("  v_sum integer;", "\tv_sum integer;", 11, "a tab; indent with two spaces"),
        ("stable\n", "stable \n", 5, "blanks at the end of the line"),
        ("'Gives one.';\n", "'Gives one.';", 20, "a file ends with exactly one line end"),
        ("  v_sum integer;", f"  v_sum integer; -- {'x' * 130}", 11, "150 characters"),
        ("-- Gives one.", "--Gives one.", 1, "the first line must describe the object"),
        ("select count", "SELECT count", 15, "SELECT should be lower case"),
        ("returns integer", "returns INTEGER", 3, "INTEGER should be lower case"),
        ("from picked", "from Picked", 15, "Picked should be lower case"),
        ("trunkline.one(p_by", "trunkline.two(p_by", 2, "two is in a file named one.sql"),
        (
            "function trunkline.one(p_by",
            "function public.one(p_by",
            2,
            "belongs in schema trunkline",
        ),
        ("create or replace", "create", 2, "cannot be applied again"),
        ("is 'Gives one.'", "is 'Gives two.'", 20, "the comment is not the sentence"),
        (
            "comment on function trunkline.one",
            "comment on function trunkline.two",
            20,
            "not the comment",
        ),
        ("(p_by integer)\n", "(amount integer)\n", 2, "argument amount should begin with p_"),
        ("(p_by integer)\n", "(integer)\n", 2, "argument without a name should begin with p_"),
        ("stable\n", "", 2, "volatility is not stated"),
        ("language plpgsql", "language plperl", 2, "language plperl"),
        ("security definer\n", "", 2, "a function of schema trunkline is security definer"),
        ("set search_path = pg_catalog, pg_temp\n", "", 2, "set search_path = pg_catalog, pg_temp"),
        ("= pg_catalog, pg_temp", "= pg_temp, pg_catalog", 2, "set search_path = pg_catalog"),
        ("= pg_catalog, pg_temp", "= pg_catalog", 2, "set search_path = pg_catalog, pg_temp"),
        ("c_one", "v_one", 10, "constant v_one should begin with c_"),
        ("v_sum", "total", 11, "variable total should begin with v_"),
        (
            "from trunkline_internal.tasks as t)",
            "from tasks as t)",
            14,
            "relation tasks is not qualified",
        ),
        ("from picked as p", "from chosen as p", 14, "relation chosen is not qualified"),
        ("p_of => 2", "2", 17, "half is called without p_… => notation"),
        ("+ c_one", "+ random()", 17, "random(); draw with trunkline_internal.draw()"),
        ("  return v_sum", "  execute 'select 1';\n  return v_sum", 17, "execute; dynamic SQL"),
        (
            "  return v_sum",
            "  for v_task in execute 'x' loop null; end loop;\n  return v_sum",
            17,
            "execute",
        ),
        ("end;\n$$", "en;\n$$", 8, "not valid PL/pgSQL"),
        ("t.task from", "t.task form", 8, "syntax error"),
        ("create or replace", "create or place", 2, "not valid SQL"),
    ],
)
def test_each_rule_of_functions(old: str, new: str, line: int, message: str) -> None:
    assert old in GOOD
    breaches = found("a/api/one.sql", GOOD.replace(old, new))
    assert any(at == line and message in text for at, text in breaches), breaches


def test_internal_functions_run_with_the_rights_of_the_caller() -> None:
    text = HELPER.replace("immutable\n", "immutable\nsecurity definer\n")
    assert found("a/internal/half.sql", text) == [
        (2, "security definer is for schema trunkline only")
    ]


def test_inlined_helpers_qualify_what_they_call() -> None:
    text = HELPER.replace("pg_catalog.int4div", "int4div")
    assert found("a/internal/half.sql", text) == [
        (6, "int4div is not qualified, and this function does not pin the path")
    ]
    # The parser itself reads this one, and only unqualified.
    several = HELPER.replace("pg_catalog.int4div(p_of, 2)", "u.a from unnest('{}', '{}') as u (a)")
    assert found("a/internal/half.sql", several) == []


def test_plpgsql_helpers_pin_the_path() -> None:
    text = GOOD.replace("trunkline.one", "trunkline_internal.one").replace("security definer\n", "")
    assert found("a/internal/one.sql", text) == []
    unpinned = text.replace("set search_path = pg_catalog, pg_temp\n", "")
    messages = [message for _, message in found("a/internal/one.sql", unpinned)]
    assert "set search_path = pg_catalog, pg_temp is missing" in messages


def test_a_second_object_is_one_too_many() -> None:
    assert (1, "a file contains one object and its comment, and nothing else") in found(
        "a/views/shown.sql", VIEW + "select 1;\n"
    )
    assert found("a/views/shown.sql", VIEW.partition("comment")[0]) == [
        (1, "a file contains one object and its comment, and nothing else")
    ]


def test_views_are_barriers_over_qualified_tables() -> None:
    open_view = VIEW.replace(" with (security_barrier = true)", "")
    assert found("a/views/shown.sql", open_view) == [
        (2, "a view of schema trunkline has security_barrier")
    ]
    loose = VIEW.replace("trunkline_internal.tasks", "tasks")
    assert found("a/views/shown.sql", loose) == [
        (2, "relation tasks is not qualified with its schema")
    ]


def test_partitions_may_execute() -> None:
    text = """\
-- Makes partitions.
create or replace function trunkline_internal.make_partitions()
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  execute 'select 1';
end;
$$;
comment on function trunkline_internal.make_partitions() is 'Makes partitions.';
"""
    assert found("duties/internal/make_partitions.sql", text) == []
    assert (9, "execute; dynamic SQL is for partitions, roles and duties only") in found(
        "queue/internal/make_partitions.sql", text
    )


def test_migrations_qualify_what_they_change() -> None:
    text = "-- why: x\n-- breaking: no\n\ncreate table one (a integer);\n"
    assert found("migrations/0001_one.sql", text) == [
        (4, "relation one is not qualified with its schema")
    ]


def test_the_engine_keeps_the_rules() -> None:
    breaches = [
        str(finding)
        for path in sorted(ENGINE.rglob("*.sql"))
        for finding in lint(path.relative_to(ENGINE).as_posix(), path.read_text(encoding="utf-8"))
    ]
    assert breaches == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("create schema shop;\n", "the first line must describe the object"),
        ("-- Makes a shop.\nCREATE schema shop;\n", "CREATE should be lower case"),
        ("-- Makes a shop.\ncreate schem shop;\n", "not valid SQL"),
    ],
)
def test_a_script_of_a_profile_keeps_the_rules_of_text(text: str, message: str) -> None:
    (finding,) = lint_script("profiles/src/shop/sql/phase1/stock.sql", text)
    assert message in finding.message
    assert lint_script("phase1/stock.sql", "-- Makes a shop.\ncreate schema shop;\n") == []
