"""Few places list the fields of a request by hand; this one names them all."""

import re
from pathlib import Path

from trunkline.model import REQUEST_FIELDS

SOURCES = Path(__file__).parents[2] / "src" / "trunkline"

# A list is this many of the fields, among them one that no stored job has, within so many lines.
ENOUGH = 10
LINES = 40

PLACES = {
    # The two definitions, which a test compares.
    "sql/migrations/0001_baseline/05_job_types.sql",
    "model/request.py",
    # The arguments of enqueue, and the call with the fields of one job of a document.
    "sql/queue/api/enqueue.sql",
    "sql/queue/internal/enqueue_each.sql",
    # The rules for each field, and the calls that check a batch and a single request with them.
    "sql/queue/internal/request_fault.sql",
    "sql/queue/internal/enqueue_set.sql",
    "sql/queue/internal/check_request.sql",
    # The keyword arguments in Python and the options of the command line.
    "client/request.py",
    "cli/jobs.py",
    # The body of a request to the HTTP API.
    "http/v1/jobs.py",
}


def lists_fields(text: str) -> bool:
    """True if the fields of a request are listed anywhere in the text."""
    lines = [
        {word.removeprefix("p_") for word in re.findall(r"[a-z_]+", line.replace("-", "_"))}
        for line in text.splitlines()
    ]
    for start in range(len(lines)):
        words = set().union(*lines[start : start + LINES])
        named = {word.strip("_") for word in words} & set(REQUEST_FIELDS)
        if "idempotency_key" in named and len(named) >= ENOUGH:
            return True
    return False


def test_no_other_file_lists_the_fields_of_a_request() -> None:
    files = [path for path in SOURCES.rglob("*") if path.suffix in {".py", ".sql"}]
    found = {
        path.relative_to(SOURCES).as_posix()
        for path in files
        if "idempotency_key" in (text := path.read_text(encoding="utf-8")).replace("-", "_")
        and lists_fields(text)
    }
    assert found == PLACES
