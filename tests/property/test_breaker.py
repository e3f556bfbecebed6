"""Breakers against a model: what they count, when they open, and how many they let through."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from tests.flow.conftest import Desk
from tests.property.still import at, begun_anew, still_desk
from tests.support.calls import Attempt
from tests.support.servers import Server

_NEVER = 10**9


@dataclass
class Model:
    """One breaker as the requirements describe it, by the second."""

    failures: int
    percent: int
    window: int
    probe_after: int
    state: str = "closed"
    failed: list[int] = field(default_factory=list)
    started: Counter[int] = field(default_factory=Counter)
    closed_at: int = -_NEVER
    probe_at: int = _NEVER
    probe: UUID | None = None

    def account(self, now: int) -> tuple[int, int]:
        failed = sum(1 for second in self.failed if second > max(now - self.window, self.closed_at))
        minutes = (now - self.window) // 60
        return failed, max(failed, sum(n for m, n in self.started.items() if m >= minutes))

    def lets(self, now: int) -> int:
        match self.state:
            case "closed":
                return _NEVER
            case "open":
                return int(self.probe_at <= now)
            case _:
                return int(self.probe is None)

    def starts(self, now: int, jobs: list[UUID]) -> None:
        if self.state != "closed" and jobs:
            [self.probe] = jobs
            self.state, self.started = "half_open", Counter()
        self.started[now // 60] += len(jobs)

    def ends(self, now: int, job: UUID, how: str) -> None:
        probe = self.state == "half_open" and job == self.probe
        if probe:
            self.probe = None
        if how == "complete" and probe:
            self.state, self.closed_at = "closed", now
        if how == "fail":
            self.failed.append(now)
            failed, attempts = self.account(now)
            many = failed >= self.failures and failed * 100 >= self.percent * attempts
            if probe or (self.state == "closed" and many):
                self.state, self.probe_at = "open", now + self.probe_after


@pytest.fixture(scope="module")
def desk(server: Server, template: str) -> Iterator[Desk]:
    with still_desk(server, template) as found:
        yield found


models = st.builds(
    Model,
    failures=st.integers(1, 6),
    percent=st.integers(0, 100),
    window=st.sampled_from([60, 90, 600]),
    probe_after=st.integers(1, 90),
)
# Most of them fail, or it would never open.
ends = st.sampled_from(["fail", "fail", "fail", "complete", "complete", "release", "snooze"])
steps = st.lists(
    st.tuples(
        # Seconds that pass, jobs that are asked for, and how so many of those that run end.
        st.one_of(st.just(0), st.integers(0, 5), st.integers(0, 200)),
        st.integers(1, 8),
        st.lists(ends, max_size=8),
    ),
    min_size=1,
    max_size=25,
)


@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(model=models, story=steps)
def test_a_breaker_does_what_its_model_does(
    desk: Desk, model: Model, story: list[tuple[int, int, list[str]]]
) -> None:
    """RF-85, RF-86, overview 6.14, in whatever order things happen."""
    begun_anew(desk)
    parts = {
        "breaker_failures": model.failures,
        "breaker_share": model.percent / 100,
        "breaker_window": f"{model.window} seconds",
        "breaker_probe_after": f"{model.probe_after} seconds",
    }
    desk.operator.value("select trunkline.set_limit('api', %s)", Jsonb(parts))
    now = 0
    running: list[Attempt] = []
    for passed, asked, ending in story:
        now += passed
        at(desk, now)
        # Those that were handed back go before: there are always more than are asked for.
        desk.enqueue(asked)
        claimed = desk.claim(asked)
        assert len(claimed) == min(asked, model.lets(now)), (now, model)
        model.starts(now, [attempt.job for attempt in claimed])
        running += claimed
        for how in ending:
            if running:
                attempt = running.pop(0)
                later = {} if how in {"complete", "release"} else {"delays": ["30 days"]}
                desk.end([attempt], how, **later)
                model.ends(now, attempt.job, how)
        row = desk.operator.connection.execute(
            "select state, failures, attempts from trunkline.breakers"
        ).fetchone()
        assert row == (model.state, *model.account(now)), (now, model)
