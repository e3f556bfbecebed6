"""Wake-ups, and the answers to operators, with the profile executor."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from trunkline.errors import DatabaseProblem, DatabaseUnreachable, ProfileError
from trunkline.profiles import Profile, Session, troubleshooting, wake_ups
from trunkline_profiles.executor import PROFILE


class Database:
    """Answers of the wake-up, in turn; the last pause ends the story."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: Any) -> None:
        self.answers = list(answers)
        self.said: list[str] = []
        self.pauses: list[float] = []
        self.targets: list[Any] = []
        monkeypatch.setattr(wake_ups, "session", self._session)
        monkeypatch.setattr(wake_ups.time, "sleep", self._sleep)  # type: ignore[attr-defined]

    @contextmanager
    def _session(self, dsn: str, profile: Any, *, schema: str | None) -> Iterator[Any]:
        self.targets.append((dsn, profile, schema))
        yield SimpleNamespace(ask=self._ask)

    def _ask(self, question: str) -> Any:
        assert question == PROFILE.wake_up
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return [(answer,)]

    def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if not self.answers:
            raise EOFError

    def wake(self, **options: Any) -> None:
        wake_ups.keep_waking("dsn", PROFILE, say=self.said.append, **options)


def test_wake_ups_go_on_while_the_server_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = [DatabaseUnreachable("gone"), DatabaseProblem("odd")]
    database = Database(monkeypatch, "woke 2", None, *lost, "woke 1")
    with pytest.raises(EOFError):
        database.wake()
    assert database.said == ["woke 2", "gone; trying again", "odd; trying again", "woke 1"]
    assert database.pauses == [5.0] * 5
    assert database.targets == [("dsn", PROFILE, None)] * 5


@pytest.mark.parametrize(("answer", "said"), [(None, "nothing is due"), ("woke", "woke")])
def test_a_single_wake_up_reports_what_it_did(
    monkeypatch: pytest.MonkeyPatch, answer: str | None, said: str
) -> None:
    database = Database(monkeypatch, answer)
    database.wake(once=True, schema="other")
    assert database.said == [said]
    assert database.pauses == []
    assert database.targets[0][2] == "other"


@pytest.mark.parametrize("error", [DatabaseUnreachable("gone"), DatabaseProblem("odd")])
def test_a_single_wake_up_fails_with_the_server(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    database = Database(monkeypatch, error)
    with pytest.raises(type(error)):
        database.wake(once=True)
    assert database.said == []


def test_an_unknown_topic_is_refused_with_a_list_of_topics() -> None:
    known = ", ".join(PROFILE.topics)
    with pytest.raises(ProfileError) as told:
        troubleshooting.troubleshoot("dsn", PROFILE, "no_such")
    assert str(told.value) == f"Profile executor has no topic 'no_such'; it has: {known}"


def test_rows_of_an_answer_have_names_and_plain_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = next(iter(PROFILE.topics))

    class Cursor(list[Any]):
        description = (SimpleNamespace(name="a"), SimpleNamespace(name="b"))

    @contextmanager
    def session(dsn: str, profile: Profile, *, schema: str) -> Iterator[Any]:
        rows = Cursor([(Decimal("1.5"), "x"), (None, 2)])
        connection: Any = SimpleNamespace(execute=lambda _: rows)
        yield Session(connection, profile, schema)

    monkeypatch.setattr(troubleshooting, "session", session)
    answers = troubleshooting.troubleshoot("dsn", PROFILE, topic, schema="other")
    assert [answer.title for answer in answers] == [title for title, _ in PROFILE.topics[topic]]
    assert answers[0].rows == ({"a": 1.5, "b": "x"}, {"a": None, "b": 2})
    assert isinstance(answers[0].rows[0]["a"], float)
    assert not any(f"{PROFILE.schema}." in answer.sql for answer in answers)
