"""Users add duties of their own. They run like the engine's, and harm none of them."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count

import psycopg
import pytest

from tests.integration.duties.own import App
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.pause import Pauses
from tests.support.waiting import DEADLINE, together, until
from trunkline.schema import upgrade, verify

CALLERS = 8
BUILT_IN = {
    *("advance_workflows", "decide_workers", "expand_workflows", "expire"),
    *("maintain_partitions", "promote", "reclaim", "run_schedules", "sweep_artifacts"),
    *("sweep_buckets", "sweep_idempotency", "sweep_labels", "sweep_operator_log"),
    *("sweep_live", "sweep_steps", "sweep_workflows"),
}


@pytest.fixture
def app(database: Database) -> App:
    return App(database)


def test_an_added_duty_runs_when_it_is_due(app: App) -> None:
    app.add("count", "app.count_runs")
    assert app.run_all()["count"] == (True, None, None)
    assert "count" not in app.run_all()
    app.database.move_time("59 minutes")
    assert "count" not in app.run_all()
    app.database.move_time("1 minute")
    assert "count" in app.run_all()
    assert app.runs() == 2


@pytest.mark.parametrize(
    ("result", "body", "rows"),
    [
        ("integer", "select 7", 7),
        ("bigint", "select 8::bigint", 8),
        ("void", "select", None),
        ("text", "select 'done'", None),
        ("setof integer", "select generate_series(1, 3)", 3),
        ("table (a integer, b text)", "values (1, 'x'), (2, 'y')", 2),
        ("setof record", "select 1, 2", 1),
    ],
)
def test_the_result_of_a_duty_is_its_number_of_rows(
    app: App, result: str, body: str, rows: int | None
) -> None:
    app.installer.execute(f"create function app.f() returns {result} language sql as $${body}$$")
    app.add("f", "app.f")
    assert app.run_all()["f"] == (True, rows, None)
    assert app.operator.value("select rows from trunkline.duties where duty = 'f'") == rows


def test_names_that_need_quotes_are_kept(app: App) -> None:
    app.installer.execute(
        'create function app."Clean ""up"""(n integer default 2) returns integer'
        " language sql as 'select n'"
    )
    app.add("f", 'APP."Clean ""up"""')
    assert app.run_all()["f"] == (True, 2, None)
    function = app.operator.value("select function from trunkline.duties where duty = 'f'")
    assert function == 'app."Clean ""up"""'


def test_a_duty_runs_with_the_rights_of_the_owner(app: App) -> None:
    app.installer.execute(
        "create table app.seen (role text, tenant text);"
        "grant insert on app.seen to trunkline_owner;"
        "create function app.look() returns void language sql"
        " as 'insert into app.seen values (current_user, trunkline.tenant_scope())'"
    )
    app.add("look", "app.look")
    assert app.run_all()["look"][2] is None
    assert app.installer.execute("select * from app.seen").fetchall() == [("trunkline_owner", None)]


def test_a_session_that_acts_for_one_tenant_leaves_it_to_others(app: App) -> None:
    app.add("count", "app.count_runs")
    app.worker.connection.execute("set trunkline.tenant = 'a'")
    assert app.run_all()["count"] == (False, None, None)
    app.worker.connection.execute("reset trunkline.tenant")
    assert app.run_all()["count"] == (True, None, None)
    assert app.runs() == 1


def test_many_callers_at_once_run_it_once(app: App) -> None:
    app.add("count", "app.count_runs")
    callers = [Calls(app.database.connect("trunkline_worker")) for _ in range(CALLERS)]

    def care(calls: Calls) -> None:
        calls.connection.execute("select from trunkline.run_duties()")

    together([partial(care, calls) for calls in callers])
    assert app.runs() == 1


def test_a_caller_that_comes_late_does_not_run_it_again(app: App) -> None:
    """Another session runs the duty after this one has listed what is due."""
    pauses = Pauses(app.database)
    app.add("count", "app.count_runs")
    other = app.database.connect("trunkline_worker")

    def run(calls: Calls) -> int:
        return len(calls.connection.execute("select from trunkline.run_duties()").fetchall())

    for reading in count(1):
        before = app.runs()
        app.database.move_time("2 hours")
        overtaken = pauses.at(
            reading, run, lambda: other.execute("select from trunkline.run_duties()"), other
        )
        assert app.runs() == before + 1, f"overtaken at reading {reading} of the clock"
        if overtaken is None:
            break


def test_an_error_is_recorded_and_stops_no_other_duty(app: App) -> None:
    app.add("a_break", "app.break")
    app.add("z_count", "app.count_runs")
    app.database.move_time("1 hour")
    ran = app.run_all()
    assert ran["a_break"] == (True, 0, "the disk is full")
    assert set(ran) == {"a_break", "z_count", *BUILT_IN}
    assert [duty for duty, (has_run, _, error) in ran.items() if not has_run or error] == [
        "a_break"
    ]
    for failures in (1, 2, 3):
        detail = app.health("a_break")[1]
        assert detail["failures_in_a_row"] == failures
        assert detail["last_error"] == {"sqlstate": "P0001", "message": "the disk is full"}
        app.worker.value("select trunkline.run_duty('a_break')")
    assert not app.health("a_break")[0]
    app.installer.execute("create or replace function app.break() returns integer return 1")
    app.worker.value("select trunkline.run_duty('a_break')")
    assert app.health("a_break")[0]


@pytest.mark.parametrize(
    ("body", "sqlstate"),
    [
        ("assert false, 'never'", "P0004"),
        ("perform 1 / 0", "22012"),
        ("perform app.recurse()", "54001"),
    ],
)
def test_whatever_a_duty_does_others_run(app: App, body: str, sqlstate: str) -> None:
    app.installer.execute(
        f"create function app.recurse() returns void language plpgsql as $$ begin {body}; end $$"
    )
    app.add("bad", "app.recurse")
    app.database.move_time("1 hour")
    ran = app.run_all()
    assert {duty for duty, (has_run, _, error) in ran.items() if has_run and not error} == BUILT_IN
    assert app.health("bad")[1]["last_error"]["sqlstate"] == sqlstate


def test_a_duty_that_is_cancelled_counts_as_failed_and_others_run(app: App) -> None:
    """Or one that always exceeds statement_timeout would undo all others with it."""
    app.add("stuck", "app.wait")
    app.database.move_time("1 hour")
    with ThreadPoolExecutor(max_workers=1) as pool:
        running = pool.submit(app.run_all)
        pid = app.worker.connection.info.backend_pid
        observer = app.database.superuser()
        until(
            lambda: observer.execute(
                "select from pg_stat_activity where pid = %s and wait_event = 'PgSleep'", (pid,)
            ).fetchall(),
            "the duty runs",
        )
        observer.execute("select pg_cancel_backend(%s)", (pid,))
        ran = running.result(DEADLINE)
    assert "canceling statement" in (ran["stuck"][2] or "")
    assert {duty for duty, (has_run, _, error) in ran.items() if has_run and not error} == BUILT_IN
    assert app.health("stuck")[1]["last_error"]["sqlstate"] == "57014"


def test_a_function_that_is_gone_is_a_failure(app: App) -> None:
    app.add("count", "app.count_runs")
    app.installer.execute("drop function app.count_runs()")
    error = app.run_all()["count"][2]
    assert error == "app.count_runs cannot run as a duty: it must be a function that exists"
    assert set(app.run_all()) <= BUILT_IN


def test_disabled_duties_do_not_run_until_they_are_enabled(app: App) -> None:
    app.add("count", "app.count_runs")
    app.run_all()
    for duty in ("count", "promote"):
        app.operator.value("select trunkline.enable_duty(%s, false)", duty)
    app.database.move_time("2 hours")
    assert set(app.run_all()) == BUILT_IN - {"promote"}
    for duty in ("count", "promote"):
        ok, detail = app.health(duty)
        assert (ok, detail["enabled"], detail["late"]) == (False, False, False)
        app.operator.value("select trunkline.enable_duty(%s, true)", duty)
    assert {"count", "promote"} <= set(app.run_all())
    assert app.health("promote")[0]
    assert app.runs() == 2


def test_a_duty_named_in_a_call_runs_although_it_is_disabled(app: App) -> None:
    app.operator.value("select trunkline.enable_duty('promote', false)")
    app.operator.register("work")
    app.operator.fill(1, delay="1 minute")
    app.database.move_time("2 minutes")
    assert app.worker.run_duty("promote()") == 1


def test_own_duties_run_first_and_partitions_last(app: App) -> None:
    app.add("zebra", "app.count_runs")
    app.database.move_time("1 day")
    order = list(app.run_all())
    assert (order[0], order[-1]) == ("zebra", "maintain_partitions")


def test_a_duty_can_be_changed_and_removed(app: App) -> None:
    app.add("count", "app.break")
    app.run_all()
    app.operator.value("select trunkline.enable_duty('count', false)")
    app.add("count", "app.count_runs", "1 day")
    row = app.operator.connection.execute(
        "select function, every::text, description, enabled, runs from trunkline.duties"
        " where duty = 'count'"
    ).fetchone()
    assert row == ("app.count_runs", "1 day", "Calls app.count_runs.", False, 1)
    app.installer.execute("select trunkline.remove_duty('count')")
    assert app.operator.value("select count(*) from trunkline.duties where duty = 'count'") == 0


def test_built_in_duties_cannot_be_replaced_or_removed(app: App) -> None:
    assert app.refused("promote", "app.count_runs")["argument"] == "p_duty"
    with pytest.raises(psycopg.Error) as caught:
        app.installer.execute("select trunkline.remove_duty('promote')")
    assert caught.value.sqlstate == "TL028"


def test_an_upgrade_keeps_duties_and_verify_finds_nothing(app: App) -> None:
    app.add("count", "app.count_runs")
    app.operator.value("select trunkline.enable_duty('promote', false)")
    upgrade(app.database.dsn)
    assert verify(app.database.dsn) == []
    rows = app.operator.connection.execute("select duty, enabled from trunkline.duties").fetchall()
    assert {"count": True, "promote": False}.items() <= dict(rows).items()
