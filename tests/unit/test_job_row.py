"""The fields of a job are listed in job_row.toml and in what is generated from it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import generate_job_row, job_row

_ROOT = Path(__file__).parents[2]
_PACKAGE = _ROOT / "src" / "trunkline"
_ROW = job_row.read()
_NAMES = {field.name for field in _ROW.fields} | {"id"}
_TABLES = "|".join(job_row.TABLES)
_INSERT = re.compile(rf"insert into trunkline_internal\.(?:{_TABLES})\b[^(]*\(([^)]*)\)")
_ITEM = r"(?:\w+\.)?[a-z_]+(?:::[a-z\[\]]+)?(?: as [a-z_]+)?"
_LIST = re.compile(rf"{_ITEM}(?:\s*,\s*{_ITEM})+")
# So many fields of a job in a row are a list of its columns; a few are what a statement is about.
_MANY = 10

# Written by hand, each with its reason. Take a place out when it is gone; never add one.
_BY_HAND = {
    # What a worker needs of a claimed job, in an order of its own.
    "db/calls/work.py": 1,
    "model/job.py": 1,
    # The view of dead letters.
    "sql/queue/views/dead_letters.sql": 1,
    # What a person following the queue sees of a job.
    "sql/operate/api/recent_activity.sql": 1,
    "db/calls/recent.py": 1,
    "model/activity.py": 1,
    # What those who follow a job see of it.
    "sql/live/api/live_jobs.sql": 1,
    "db/calls/live.py": 1,
    "model/live.py": 1,
    # What a request to the HTTP API says about a new job.
    "http/v1/jobs.py": 1,
    # New jobs of a payload alone: nothing is copied.
    "sql/queue/internal/enqueue_payloads.sql": 1,
}
# Classes of other things, which have a tenant, times, a key and tags as a job has.
_NO_JOBS = {"WorkflowStatus"}


def _by_hand(path: Path) -> str:
    """Return the text without regions, and without what an INSERT changes besides its region."""

    def insert(found: re.Match[str]) -> str:
        return "" if "-- <job columns" in found[1] else found[0]

    text = _INSERT.sub(insert, path.read_text(encoding="utf-8"))
    return generate_job_row.REGION.sub("", text)


def _lists(text: str) -> Iterator[set[str]]:
    """Yield the columns of every list separated by commas."""
    for found in _LIST.finditer(re.sub(r"\"\s*\n\s*\"", " ", text)):
        yield {re.split(r"::| as ", item.strip())[0].split(".")[-1] for item in found[0].split(",")}


def _declared(text: str) -> Iterator[set[str]]:
    """Yield the fields of every class, and the texts of every list."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef) and node.name not in _NO_JOBS:
            yield {
                part.target.id
                for part in node.body
                if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
            }
        elif isinstance(node, ast.List | ast.Tuple | ast.Set):
            yield {
                part.value
                for part in node.elts
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            }


def _places() -> dict[str, int]:
    found: dict[str, int] = {}
    for path in sorted(_PACKAGE.rglob("*")):
        name = path.relative_to(_PACKAGE).as_posix()
        if path.suffix not in {".sql", ".py"} or name.startswith("sql/migrations/"):
            continue
        if path == _PACKAGE / "db" / "calls" / "job_columns.py":
            continue
        text = _by_hand(path)
        lists = [*_lists(text), *(_declared(text) if path.suffix == ".py" else ())]
        count = sum(len(columns & _NAMES) >= _MANY for columns in lists)
        if count:
            found[name] = count
    return found


def test_no_new_place_lists_the_columns_of_a_job_by_hand() -> None:
    hint = "put the list into a region: tools/generate_job_row.py says how"
    assert _places() == _BY_HAND, hint


def test_every_insert_into_a_job_table_has_a_generated_region() -> None:
    found = {
        path.relative_to(_PACKAGE).as_posix()
        for path in (_PACKAGE / "sql").rglob("*.sql")
        for columns in _INSERT.findall(path.read_text(encoding="utf-8"))
        if "-- <job columns" not in columns
    }
    assert found == {"sql/queue/internal/enqueue_payloads.sql"}


def test_the_definition_has_the_columns_of_the_migrations() -> None:
    assert job_row.differences(_ROW) == []


def test_a_column_that_only_one_side_has_is_named() -> None:
    fields = tuple(field for field in _ROW.fields if field.name != "tags")
    extra = job_row.Field(name="colour", type="text", tables=("dead",), shown=("listed_job",))
    wrong = job_row.differences(job_row.JobRow((*fields, extra), {}))
    assert "dead.colour text is only in job_row.toml" in wrong
    assert "waiting.tags text[] is only in the migrations" in wrong
    assert any(line.startswith("type listed_job has") for line in wrong)


_MOVE = """insert into trunkline_internal.dead (
  died_at, reason, last_error,
  -- <job columns: waiting to dead>
  stale
  -- </job>
)
select
  p_now, 'lost', null,
  -- <job values: w>
  -- </job>
from trunkline_internal.waiting as w;
"""


def test_a_region_has_what_a_move_copies_and_leaves_out_what_is_written_by_hand() -> None:
    text = generate_job_row.filled(_MOVE, _ROW, "move.sql")
    columns, values = (region["body"] for region in generate_job_row.REGION.finditer(text))
    named = [column.strip() for column in columns.split(",")]
    assert "stale" not in text
    assert {"job_id", "priority", "tags", "crashes"} <= set(named)
    assert not {"died_at", "reason", "last_error", "acknowledged_at", "worker"} & set(named)
    assert len(named) == len(values.split(","))
    assert "w.lane >> 1" in values.split(", ")[named.index("priority")]
    assert not columns.rstrip().endswith(",")


def test_a_selection_has_its_fields_in_their_order() -> None:
    row = job_row.JobRow(_ROW.fields, {}, {"some": ("tenant", "job_id")})
    text = generate_job_row.filled(
        "select\n  -- <job shape: some of w>\n  -- </job>\nfrom waiting as w;\n", row, "a.sql"
    )
    [region] = generate_job_row.REGION.finditer(text)
    assert region["body"].strip() == "w.tenant, w.job_id"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("-- <job columns: waiting>\n-- </job>\n", "table to table"),
        ("-- <job values: w>\n-- </job>\n", "unknown region"),
        ("-- <job shape: nothing of w>\n-- </job>\n", "is not one of"),
        ("-- <job shape: jobs of j>\n", "without an end"),
    ],
)
def test_an_unknown_region_is_an_error(text: str, problem: str) -> None:
    with pytest.raises(LookupError, match=problem):
        generate_job_row.filled("insert into t (\n" + text, _ROW, "move.sql")
