"""Log lines for machines and for people, and text that cannot disturb a terminal."""

import io
import json
import logging
import sys
from collections.abc import Iterator
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from trunkline.model import ClaimedJob
from trunkline.telemetry import logs
from trunkline.telemetry.logs import JobLogger, chosen_logging, enter_job, set_up_logging
from trunkline.telemetry.text import UNSAFE, escaped, escaped_json, escaped_lines

_NOW = datetime(2026, 5, 1, tzinfo=UTC)


def _job(**fields: Any) -> ClaimedJob:
    job = ClaimedJob(
        job_id=UUID(int=7),
        attempt=2,
        task="t",
        payload="{}",
        queue="default",
        tenant=None,
        correlation_id=None,
        tags=None,
        failures=0,
        max_attempts=5,
        claimed_at=_NOW,
        lease_expires_at=_NOW + timedelta(minutes=5),
        hard_deadline=_NOW + timedelta(minutes=20),
        last_error=None,
    )
    return job._replace(**fields)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def root() -> Iterator[logging.Logger]:
    found = logging.getLogger()
    before = found.handlers[:], found.level
    yield found
    found.handlers[:], found.level = before[0], before[1]


def _lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_of_json_has_all_fields_of_the_record(root: logging.Logger) -> None:
    stream = io.StringIO()
    set_up_logging("json", "info", stream)
    assert chosen_logging() == ("json", "info")
    assert len(root.handlers) == 1
    log = logging.getLogger("a.b")
    log.debug("not heard")
    log.info("hello %s", "grün\x1b[31m", extra={"size": 5, "when": _NOW})
    try:
        raise ValueError("bad")
    except ValueError:
        log.exception("oh")
    first, second = _lines(stream)
    at = datetime.fromisoformat(first.pop("at"))
    assert at.tzinfo is not None
    assert first == {
        "level": "info",
        "logger": "a.b",
        "message": "hello grün\x1b[31m",
        "size": 5,
        "when": str(_NOW),
    }
    assert "\x1b" not in stream.getvalue()
    assert second["level"] == "error"
    assert second["traceback"].endswith("ValueError: bad")
    assert "traceback" not in first


@pytest.mark.parametrize("terminal", [True, False])
def test_a_line_for_people_has_its_level_in_colour_on_a_terminal(terminal: bool) -> None:
    stream = Terminal() if terminal else io.StringIO()
    set_up_logging("console", "debug", stream)
    log = logging.getLogger("a")
    log.info("fine\n%s", "x")
    log.warning("careful", extra={"size": "5\n", "b": 1})
    log.error("bad")
    log.debug("heard")
    first, second, third, fourth = stream.getvalue().splitlines()
    assert first.split(" ", 1)[1] == "info     fine\\nx"
    assert len(first.split(" ")[0]) == len("12:34:56.789")
    yellow, red, reset = ("\x1b[33m", "\x1b[31m", "\x1b[0m") if terminal else ("", "", "")
    assert second.split(" ", 1)[1] == f"{yellow}warning {reset} careful  [size=5\\n b=1]"
    assert third.split(" ", 1)[1] == f"{red}error   {reset} bad"
    assert fourth.endswith("debug    heard")


def test_an_error_is_indented_below_its_line() -> None:
    stream = io.StringIO()
    set_up_logging("console", "info", stream)
    try:
        raise ValueError("one\n12:00:00.000 info forged")
    except ValueError:
        logging.getLogger("a").exception("oh")
    lines = stream.getvalue().splitlines()
    assert lines[0].endswith("error    oh")
    assert lines[1] == "  Traceback (most recent call last):"
    assert all(line.startswith("  ") for line in lines[1:])
    assert lines[-1] == "  12:00:00.000 info forged"


def test_standard_error_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    set_up_logging("json")
    logging.getLogger("a").info("x")
    assert len(_lines(stream)) == 1
    assert chosen_logging() == ("json", "info")
    set_up_logging("console")
    logging.getLogger("a").info("y")
    assert stream.getvalue().endswith("info     y\n")


def test_lines_belong_to_the_job_that_runs() -> None:
    stream = io.StringIO()
    set_up_logging("json", "info", stream)
    log = logging.getLogger("user")

    def handler() -> None:
        enter_job(_job(correlation_id="c"))
        log.info("in it")
        log.info("of another", extra={"job_id": "x"})
        JobLogger(_job(task="u")).info("own", extra={"attempt": 9, "size": 1})
        JobLogger(_job()).info("plain")

    copy_context().run(handler)
    log.info("after it")
    inner, other, own, plain, after = _lines(stream)
    who = {"job_id": str(UUID(int=7)), "attempt": 2, "task": "t"}
    assert inner.items() >= (who | {"correlation_id": "c", "logger": "user"}).items()
    assert other["job_id"] == "x"
    assert "attempt" not in other
    assert own.items() >= {**who, "attempt": 9, "task": "u", "size": 1}.items()
    assert own["logger"] == "trunkline.task.u"
    assert plain.items() >= who.items()
    assert "correlation_id" not in plain
    assert "job_id" not in after


def test_no_fields_are_added_without_a_job() -> None:
    record: Any = SimpleNamespace()
    assert logs._add_job(record) is True  # noqa: SLF001
    assert vars(record) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain grün", "plain grün"),
        ("a\nb\rc\td", "a\\nb\\rc\\td"),
        ("\x00\x1b\x7f\x9f", "\\x00\\x1b\\x7f\\x9f"),
        ("\xff\u0100", "\xff\u0100"),
        ("\u061c\u2028\ud800", "\\u061c\\u2028\\ud800"),
    ],
)
def test_unsafe_characters_are_written_as_escapes(text: str, expected: str) -> None:
    assert escaped(text) == expected


def test_every_unsafe_character_is_escaped() -> None:
    text = "".join(map(chr, UNSAFE))
    assert escaped(text).isascii()
    assert escaped_json(text).isascii()
    assert escaped_json('"\x7f\u2028"') == '"\\u007f\\u2028"'
    assert escaped_lines("a\tb\nc", "> ") == "> a\\tb\n> c"
    assert escaped_lines("a") == "a"


_SIGNATURE = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
_LINKS = {
    "folder": f"https://x.test/files/a.mp3?expires=1&key=ab12&signature={_SIGNATURE}",
    "s3": "https://b.s3.test/a.mp3?X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature="
    + _SIGNATURE,
    "gcs": f"https://storage.test/b/a.mp3?X-Goog-Signature={_SIGNATURE}&X-Goog-Expires=60",
    "azure": f"https://c.blob.test/a.mp3?se=2026&sig={_SIGNATURE}%3D&sp=r",
}


@pytest.mark.parametrize("kind", _LINKS)
@pytest.mark.parametrize("output", [io.StringIO, Terminal])
def test_a_signed_link_does_not_work_any_more_in_a_log(
    kind: str, output: type[io.StringIO]
) -> None:
    stream = output()
    set_up_logging("json" if output is io.StringIO else "console", "info", stream)
    link = _LINKS[kind]
    log = logging.getLogger("app")
    log.info("uploading to %s, again", link, extra={"url": link})
    try:
        raise ValueError(f"PUT {link} failed")
    except ValueError:
        log.exception("failed")
    text = stream.getvalue()
    assert text.count("a.mp3") >= 3
    assert "…" in text or "\\u2026" in text
    assert _SIGNATURE not in text
    assert ", again" in text


def test_a_command_prints_an_error_without_the_signature_of_its_link() -> None:
    assert _SIGNATURE not in escaped(_LINKS["s3"])
    # What only looks like one stays.
    assert escaped("design=3 signature: none") == "design=3 signature: none"
