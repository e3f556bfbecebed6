"""The limiter against a model: no window is ever over, and little is wasted."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.flow.conftest import Desk
from tests.property.still import at, begun_anew, still_desk
from tests.support.servers import Server

# What no window may hold, and what may always be taken: a window is as long as it says; the engine
# adds the second of the charge, the second to start in and, for the hour, up to a minute.
_MINUTE, _HOUR = 60, 3600
_CAREFUL_MINUTE, _CAREFUL_HOUR = 62, 3662


@dataclass
class Model:
    """All that was ever charged: (second, tokens), one request each."""

    limits: dict[str, int]
    charges: list[tuple[int, int]] = field(default_factory=list)

    def fits(self, now: int, tokens: int, minute: int, hour: int) -> bool:
        sums = {"requests": 1, "tokens": tokens}
        for name, length in (("minute", minute), ("hour", hour)):
            recent = [cost for at, cost in self.charges if at > now - length]
            used = {"requests": len(recent), "tokens": sum(recent)}
            for unit, amount in sums.items():
                most = self.limits.get(f"{unit}_per_{name}")
                if most is not None and used[unit] + amount > most:
                    return False
        return True


@pytest.fixture(scope="module")
def desk(server: Server, template: str) -> Iterator[Desk]:
    with still_desk(server, template) as found:
        yield found


# Of large ones claims take a part side by side.
amounts = st.one_of(st.none(), st.integers(1, 30), st.integers(30, 400))
PARTS = ("requests_per_minute", "requests_per_hour", "tokens_per_minute", "tokens_per_hour")
limits = st.fixed_dictionaries(dict.fromkeys(PARTS, amounts))
steps = st.lists(
    st.tuples(
        # Seconds that pass, jobs that come, tokens of each, jobs that are asked for.
        st.one_of(st.integers(0, 3), st.integers(0, 70), st.integers(0, 4000)),
        st.integers(0, 6),
        st.integers(0, 8),
        st.integers(1, 10),
    ),
    min_size=1,
    max_size=25,
)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@example(
    parts={**dict.fromkeys(PARTS), "tokens_per_hour": 8},
    story=[(0, 4, 2, 1), (0, 1, 0, 3), (0, 0, 0, 1)],
)
@given(parts=limits, story=steps)
def test_no_window_is_ever_over_and_what_fits_is_given(
    desk: Desk,
    parts: dict[str, int | None],
    story: list[tuple[int, int, int, int]],
) -> None:
    begun_anew(desk)
    desk.set_limit("api", parts)
    model = Model({name: most for name, most in parts.items() if most is not None})
    most = [parts[name] or 8 for name in ("tokens_per_minute", "tokens_per_hour")]
    now, waiting = 0, []
    for passed, arriving, cost, asked in story:
        now += passed
        at(desk, now)
        price = min(cost, *most)
        desk.enqueue(arriving, cost={"tokens": price})
        waiting += [price] * arriving
        claimed = len(desk.claim(asked))
        assert claimed <= min(asked, len(waiting))
        for taken in waiting[:claimed]:
            assert model.fits(now, taken, _MINUTE, _HOUR), (now, taken, model)
            model.charges.append((now, taken))
        waiting = waiting[claimed:]
        if waiting and claimed < asked:
            # A spent window closes the bucket for all, also for what costs nothing of it.
            least = max(waiting[0], 1)
            assert not model.fits(now, least, _CAREFUL_MINUTE, _CAREFUL_HOUR), (now, model)
