"""What providers say about their limits, and what they say that means nothing (RF-81)."""

import math
from email.utils import formatdate

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline.handler.http.limit_headers import Observed, read

NOW = 1_800_000_000.0
_NAMES = [
    "date",
    "retry-after",
    "retry-after-ms",
    "ratelimit",
    "ratelimit-policy",
    *(f"ratelimit-{fact}" for fact in ("limit", "remaining", "reset")),
    *(
        f"x-ratelimit-{fact}{of}"
        for fact in ("limit", "remaining", "reset")
        for of in ("", "-requests", "-tokens")
    ),
]


def observed(**headers: str) -> Observed:
    return read({name.replace("_", "-"): text for name, text in headers.items()}, NOW)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("30", 30.0),
        ("1.5", 1.5),
        ("20ms", 0.02),
        ("6m0s", 360.0),
        ("1h2m3s", 3723.0),
        (str(int(NOW) + 90), 90.0),
        (str(int(NOW + 90) * 1000), 90.0),
        (formatdate(NOW + 45, usegmt=True), 45.0),
        # Gone by already: at once.
        (str(int(NOW) - 90), 0.0),
        (formatdate(NOW - 45, usegmt=True), 0.0),
    ],
)
def test_every_form_of_a_wait_is_understood(text: str, seconds: float) -> None:
    found = observed(retry_after=text, x_ratelimit_reset_tokens=text)
    assert (found.retry_after, found.reset_tokens) == pytest.approx((seconds, seconds))
    assert found.unreadable == ()


def test_a_date_is_compared_with_the_clock_of_the_provider() -> None:
    """An hour off, either of them: the wait is what lies between two times of the same clock."""
    date, later = formatdate(NOW + 3600, usegmt=True), formatdate(NOW + 3610, usegmt=True)
    assert observed(date=date, retry_after=later).retry_after == 10.0
    assert observed(retry_after=later).retry_after == 3610.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "-1",
        "1e9",
        "nan",
        "inf",
        "١٢",
        "12 parsecs",
        "9" * 40,
        "3000000000m",
        "6m0",
        "0x1",
    ],
)
def test_nonsense_is_left_out_and_named(text: str) -> None:
    found = observed(
        retry_after=text, x_ratelimit_remaining_tokens=text, x_ratelimit_reset_requests=text
    )
    assert found.as_json() == {}
    assert set(found.unreadable) == {
        "retry-after",
        "x-ratelimit-remaining-tokens",
        "x-ratelimit-reset-requests",
    }


def test_the_names_of_every_draft_are_read() -> None:
    wanted = {"remaining_requests": 50, "reset_requests": 30.0}
    assert observed(x_ratelimit_remaining="50", x_ratelimit_reset="30").as_json() == wanted
    assert observed(ratelimit_remaining="50", ratelimit_reset="30").as_json() == wanted
    assert observed(ratelimit="limit=100, remaining=50, reset=30").as_json() == wanted
    newest = observed(ratelimit='"default";r=50;t=30', ratelimit_policy='"default";q=100;w=60')
    assert newest.as_json() == wanted
    assert newest.limit_requests == 100
    assert observed(ratelimit_limit="100, 100;w=60").limit_requests == 100


def test_the_particular_name_goes_before_the_plain_one() -> None:
    found = observed(x_ratelimit_remaining_requests="7", x_ratelimit_remaining="9")
    assert found.remaining_requests == 7
    # And where it means nothing, the plain one is better than none.
    found = observed(x_ratelimit_remaining_requests="many", x_ratelimit_remaining="9")
    assert found.remaining_requests == 9


@pytest.mark.parametrize(
    ("remaining", "limit", "low"),
    [("0", None, True), ("1", None, False), ("9", "100", True), ("10", "100", False)],
)
def test_only_a_little_left_is_worth_telling(remaining: str, limit: str | None, low: bool) -> None:
    headers = {"x-ratelimit-remaining-tokens": remaining}
    if limit is not None:
        headers["x-ratelimit-limit-tokens"] = limit
    assert read(headers, NOW).is_low() is low


def test_a_refusal_is_429_or_503_with_a_time() -> None:
    assert Observed().refuses(429)
    assert Observed(retry_after=3.0).refuses(503)
    assert not Observed().refuses(503)
    assert not Observed(retry_after=3.0).refuses(200)


def test_the_pause_is_the_longest_that_was_asked_for() -> None:
    assert Observed(retry_after=2.0, remaining_tokens=0, reset_tokens=9.0).pause() == 2.0
    spent = Observed(remaining_requests=0, reset_requests=4.0, remaining_tokens=0, reset_tokens=9.0)
    assert spent.pause() == 9.0
    assert Observed(remaining_tokens=5, reset_tokens=9.0).pause() is None


_texts = st.one_of(
    st.text(max_size=60),
    st.text(alphabet='0123456789.;,=:+-eEmsdh "GMT', max_size=40),
    st.floats().map(str),
    st.integers().map(str),
    st.datetimes().map(lambda one: one.strftime("%a, %d %b %Y %H:%M:%S GMT")),
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(_NAMES), _texts), st.floats(0, 4e9))
def test_nothing_a_provider_sends_raises_or_means_a_wait_without_an_end(
    headers: dict[str, str], now: float
) -> None:
    found = read(headers, now)
    for name, value in found.as_json().items():
        assert math.isfinite(value), name
        assert 0 <= value <= 10**15
    for wait in (found.retry_after, found.reset_requests, found.reset_tokens, found.pause()):
        assert wait is None or 0 <= wait <= 31 * 86400
    assert set(found.unreadable) <= headers.keys()


@settings(deadline=None)
@given(st.integers(0, 10**9), st.integers(0, 86400))
def test_what_makes_sense_is_read_exactly(remaining: int, reset: int) -> None:
    headers = httpx2.Headers(
        {
            "X-RateLimit-Remaining-Tokens": str(remaining),
            "X-RateLimit-Reset-Tokens": f"{reset}s",
        }
    )
    found = read(headers, NOW)
    assert (found.remaining_tokens, found.reset_tokens) == (remaining, reset)
    assert found.unreadable == ()
