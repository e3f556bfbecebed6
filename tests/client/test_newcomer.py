"""What a newcomer did wrong, and what the answer must say."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.support.databases import Database
from trunkline import Trunkline
from trunkline.client import load
from trunkline.errors import (
    AppNotFound,
    ConnectionLost,
    InvalidArgument,
    ResultNotStorable,
    TrunklineError,
)
from trunkline.testing import Sandbox


def test_a_closed_connection_is_refused(app: Trunkline, database: Database) -> None:
    @app.task
    def work() -> None: ...

    with app.sync:
        connection = psycopg.connect(database.dsn)
        connection.close()
        with pytest.raises(ConnectionLost, match="cannot be used") as refused:
            work.sync.options(connection=connection).enqueue()
    assert "open" in refused.value.hint


@pytest.mark.parametrize(("path", "hint"), [("./shop.py:app", "shop:app"), ("shop.py", "shop:app")])
def test_a_file_is_no_module(path: str, hint: str) -> None:
    with pytest.raises(AppNotFound) as refused:
        load(path)
    assert hint in refused.value.hint


def test_a_module_that_exits_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "leaving.py").write_text("import sys\nsys.exit(3)\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(AppNotFound, match="SystemExit"):
        load("leaving:app")


def test_a_result_that_is_no_number_is_not_changed_into_null() -> None:
    app = Trunkline()

    @app.task
    def work() -> list[float]:
        return [1.0, float("nan")]

    with Sandbox(app) as sandbox, pytest.raises(ResultNotStorable, match="nan"):
        sandbox.run_inline(work.request())


def test_none_within_a_result_is_fine() -> None:
    app = Trunkline()

    @app.task
    def work() -> list[float | None]:
        return [1.0, None]

    with Sandbox(app) as sandbox:
        assert sandbox.run_inline(work.request()) == [1.0, None]


@pytest.mark.parametrize("wrong", [[1], 1])
def test_enqueue_many_wants_requests(app: Trunkline, wrong: object) -> None:
    with pytest.raises(InvalidArgument) as refused:
        app.sync.enqueue_many(wrong)  # type: ignore[arg-type]
    assert "task.request" in refused.value.hint


@pytest.mark.parametrize(
    "option", [{"priority": "high"}, {"tags": "abc"}, {"queue": 3}, {"max_attempts": True}]
)
def test_options_of_the_wrong_type(app: Trunkline, option: dict[str, object]) -> None:
    @app.task
    def work() -> None: ...

    with pytest.raises(TrunklineError) as refused:
        work.options(**option)  # type: ignore[arg-type]
    assert refused.value.code == "invalid_argument"
    assert next(iter(option)) in refused.value.hint
