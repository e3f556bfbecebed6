"""Text of others neither moves the cursor nor forges a line, wherever it is printed."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.driving import Cli, die, process
from tests.support.calls import Calls
from trunkline.telemetry import set_up_logging

# Clear the screen, C1 control sequence, line separators, text from right to left, half a pair.
HOSTILE = "a\x1b[2J\x9b2J\x7f\x85b\u2028c\u2029d\u202ee\rf\ng"
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
FORGED = "x\n12:00:00.000 error    forged"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)


def say(stream: io.StringIO, form: str, text: str) -> str:
    """Log a text as message, field and error."""
    set_up_logging(form, "info", stream)
    logger = logging.getLogger("tests.hostile")
    logger.info("message %s", text, extra={"field": text})
    try:
        raise ValueError(text)
    except ValueError:
        logger.exception("failed")
    return stream.getvalue()


@pytest.mark.parametrize("form", ["console", "json"])
def test_logs_escape_what_a_terminal_obeys(stream: io.StringIO, form: str) -> None:
    output = say(stream, form, HOSTILE + "\udc80")
    assert not UNSAFE.search(output)
    output.encode()
    if form == "json":
        first, second = map(json.loads, output.splitlines())
        assert first["message"] == f"message {HOSTILE}\udc80"
        assert first["field"] == HOSTILE + "\udc80"
        assert HOSTILE.splitlines()[0] in second["traceback"]
    else:
        assert r"a\x1b[2J\x9b2J\x7f\x85b\u2028c\u2029d\u202ee\rf\ng\udc80" in output


def test_no_text_forges_a_record(stream: io.StringIO) -> None:
    records = [line for line in say(stream, "console", FORGED).splitlines() if line[:2].isdigit()]
    assert len(records) == 2
    assert not any("error    forged" in line[:30] for line in records)


@pytest.fixture
def hostile(calls: Calls) -> str:
    """A dead job of which every text is hostile; the error has a forged line too."""
    fields: dict[str, Any] = {
        "payload": {"text": HOSTILE},
        "tags": [HOSTILE],
        "correlation_id": HOSTILE,
    }
    (job,) = die(calls, message=FORGED + HOSTILE, unique_key=HOSTILE, **fields)
    return str(job)


def test_the_command_line_shows_none_of_it(cli: Cli, hostile: str) -> None:
    for arguments in (
        ("jobs", "list"),
        ("jobs", "show", hostile),
        ("jobs", "explain", hostile),
        ("dead", "list"),
        ("dead", "show", hostile),
        ("dead", "replay", "--task", "once", "--dry-run"),
        ("workers", "list"),
        ("doctor",),
    ):
        for more in ((), ("--json",)):
            result = cli.run(*arguments, *more)
            assert result.exit_code in (0, 1), result.output
            assert not UNSAFE.search(result.output), (arguments, more, result.output)
            assert not re.search("^12:00:00.000 error", result.output, re.MULTILINE), arguments


def test_the_tail_shows_none_of_it(cli: Cli, hostile: str) -> None:
    for more in ((), ("--json",)):
        result = cli.run("jobs", "tail", "--no-follow", *more)
        assert result.exit_code == 0, result.output
        assert hostile in result.output
        assert not UNSAFE.search(result.output)
        assert not re.search("^12:00:00.000 error", result.output, re.MULTILINE)


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_an_error_shows_none_of_it(cli: Cli, more: tuple[str, ...]) -> None:
    refused = process("jobs", "enqueue", HOSTILE, *more, dsn=cli.dsn)
    assert refused.returncode == 1
    assert not UNSAFE.search(refused.stderr)
