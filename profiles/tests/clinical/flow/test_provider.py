"""The stand-in for a provider: its limits are real and its account is exact."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPMessage
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.waiting import until
from trunkline_profiles.clinical.stubs.headers import NONSENSE, duration
from trunkline_profiles.clinical.stubs.limits import HOUR, MINUTE, Window
from trunkline_profiles.clinical.stubs.process import provider_process
from trunkline_profiles.clinical.stubs.provider import Model, Provider


class Clock:
    """A time that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


class Client:
    """One kept connection."""

    def __init__(self, url: str) -> None:
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=180)

    def chat(
        self, text: str = "hello", model: str = "gpt-4o-mini", **headers: str
    ) -> tuple[int, HTTPMessage, Any]:
        body = json.dumps({"model": model, "messages": [{"role": "user", "content": text}]})
        return self.post("/v1/chat/completions", body, **headers)

    def post(self, path: str, body: str, **headers: str) -> tuple[int, HTTPMessage, Any]:
        self._connection.request("POST", path, body, headers)
        response = self._connection.getresponse()
        return response.status, response.headers, json.loads(response.read())

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def clients() -> Iterator[list[Client]]:
    made: list[Client] = []
    yield made
    for one in made:
        one.close()


def client(clients: list[Client], url: str) -> Client:
    clients.append(Client(url))
    return clients[-1]


def test_it_answers_as_a_provider_does(clients: list[Client], clock: Clock) -> None:
    with Provider(Model(requests_per_minute=3, tokens_per_minute=500), clock=clock) as provider:
        one = client(clients, provider.url)
        status, told, answer = one.chat("four letters a token")
        assert status == 200
        assert answer["object"] == "chat.completion"
        assert answer["choices"][0]["message"]["role"] == "assistant"
        used = answer["usage"]["total_tokens"]
        usage = answer["usage"]
        assert used == usage["prompt_tokens"] + usage["completion_tokens"] > 5
        assert told["x-ratelimit-limit-requests"] == "3"
        assert told["x-ratelimit-remaining-requests"] == "2"
        assert told["x-ratelimit-remaining-tokens"] == str(500 - used)
        assert told["x-ratelimit-reset-requests"] == "1m0s"
        clock.now += 59.98
        assert one.chat()[1]["x-ratelimit-reset-requests"] == "20ms"
        clock.now += 0.02
        # The first call is 60 seconds old and counts no more.
        assert one.chat()[1]["x-ratelimit-remaining-requests"] == "1"
        assert provider.account().tokens == sum(call.tokens for call in provider.calls())


def test_windows_roll_and_refusals_say_when(clients: list[Client], clock: Clock) -> None:
    """A minute that begins anywhere is a minute; the hour counts beside it."""
    model = Model(requests_per_minute=2, requests_per_hour=3)
    with Provider(model, clock=clock) as provider:
        one = client(clients, provider.url)
        assert one.chat()[0] == 200
        clock.now += 50
        assert one.chat()[0] == 200
        clock.now += 9.5
        status, told, answer = one.chat()
        assert (status, told["Retry-After"]) == (429, "1")
        assert answer["error"]["message"] == "Too many: requests_per_minute"
        clock.now += 0.5
        assert one.chat()[0] == 200
        clock.now += MINUTE
        status, told, _ = one.chat()
        assert (status, told["Retry-After"]) == (429, str(int(HOUR - 2 * MINUTE)))
        clock.now += HOUR - 2 * MINUTE
        assert one.chat()[0] == 200
        account = provider.account()
        assert (account.calls, account.served, account.refused) == (6, 4, 2)
        # The refused one of the first minute also arrived.
        assert (account.most_calls_minute, account.most_calls_hour) == (3, 5)
        assert account.over == {"requests_per_minute": 1, "requests_per_hour": 2}


def test_tokens_are_limited_and_counted(clients: list[Client], clock: Clock) -> None:
    model = Model(tokens_per_minute=1000, tokens_per_hour=1500, tokens=400)
    with Provider(model, clock=clock) as provider:
        one = client(clients, provider.url)
        assert [one.chat()[0] for _ in range(3)] == [200, 200, 429]
        clock.now += MINUTE
        assert one.chat()[2]["usage"]["total_tokens"] == 400
        assert one.chat()[2]["error"]["message"] == "Too many: tokens_per_hour"
        account = provider.account()
        assert (account.most_tokens_minute, account.most_tokens_hour) == (800, 1200)
        assert account.tokens == 1200
        assert account.over == {}


def test_most_at_once_is_what_overlapped(clients: list[Client]) -> None:
    with Provider(Model(concurrency=3)) as provider, ThreadPoolExecutor(4) as pool:
        provider.hold.clear()
        running = [pool.submit(client(clients, provider.url).chat) for _ in range(3)]
        until(lambda: provider.under_way() == 3, "three calls are under way")
        assert provider.account().over == {}
        status, told, _ = client(clients, provider.url).chat()
        assert (status, told["Retry-After"]) == (429, "1")
        provider.hold.set()
        assert [one.result()[0] for one in running] == [200, 200, 200]
        assert client(clients, provider.url).chat()[0] == 200
        account = provider.account()
        assert (account.most_at_once, account.over) == (4, {"concurrency": 1})


def test_a_provider_that_only_counts(clients: list[Client], clock: Clock) -> None:
    """What nobody enforced is told by the account."""
    model = Model(requests_per_minute=1, enforced=False)
    with Provider(model, clock=clock) as provider:
        one = client(clients, provider.url)
        assert [one.chat()[0] for _ in range(3)] == [200, 200, 200]
        assert provider.account().over == {"requests_per_minute": 2}
        assert provider.account().refused == 0


def test_the_account_checks_every_window(clock: Clock) -> None:
    """Two bursts around a full minute are one window; 60 seconds apart they are two."""
    window = Window(Model(requests_per_minute=5, enforced=False), clock)
    for moment, calls in ((55, 3), (65, 4), (115, 2), (125, 1)):
        clock.now = moment
        for _ in range(calls):
            window.arrive(10)
    account = window.account()
    # From 55 to before 115; the two at 115 do not meet the three at 55.
    assert account.most_calls_minute == 7
    assert account.most_tokens_minute == 70
    assert account.most_calls_hour == 10
    assert account.over == {"requests_per_minute": 2}


@pytest.mark.parametrize("as_date", [False, True])
def test_refusals_on_demand(clients: list[Client], as_date: bool) -> None:
    with Provider(Model(date=as_date)) as provider:
        one = client(clients, provider.url)
        provider.refuse(retry_after=7)
        provider.refuse(retry_after=None)
        status, told, _ = one.chat()
        assert status == 429
        if as_date:
            wait = (parsedate_to_datetime(told["Retry-After"]) - datetime.now(UTC)).total_seconds()
            assert 5 < wait <= 8
        else:
            assert told["Retry-After"] == "7"
        status, told, _ = one.chat()
        assert (status, told["Retry-After"]) == (429, None)
        assert one.chat()[0] == 200
        account = provider.account()
        assert (account.refused, account.refused_on_demand, account.served) == (2, 2, 1)


@pytest.mark.parametrize("kind", NONSENSE)
def test_nonsense_on_demand(clients: list[Client], kind: str) -> None:
    with Provider(Model(requests_per_minute=9)) as provider:
        one = client(clients, provider.url)
        provider.confuse(2, kind)
        provider.refuse()
        for expected in (429, 200):
            status, told, _ = one.chat()
            assert status == expected
            assert told["x-ratelimit-remaining-requests"] == NONSENSE[kind]
            assert told["Retry-After"] == NONSENSE[kind]
        assert one.chat()[1]["x-ratelimit-remaining-requests"] == "7"


def test_errors_keys_and_what_is_no_request(clients: list[Client]) -> None:
    models = {"gpt-4o-mini": Model(), "other": Model()}
    with Provider(models, key="s3cret") as provider:
        one = client(clients, provider.url)
        assert one.chat()[0] == 401
        good = {"Authorization": "Bearer s3cret"}
        provider.fail(status=502, model="gpt-4o-mini")
        assert one.chat(model="other", **good)[0] == 200
        assert one.chat(**good)[0] == 502
        assert one.chat(**good)[0] == 200
        assert one.chat(model="none", **good)[0] == 404
        for body in ("", "[]", "{}", '{"model": "other", "messages": []}'):
            assert one.post("/v1/chat/completions", body, **good)[0] == 400
        assert one.post("/stub/confuse", '{"kind": "none"}')[0] == 400
        assert one.post("/stub/else", "{}")[0] == 404
        assert one.post("/else", "")[0] == 404
        assert {name: a.calls for name, a in provider.accounts().items()} == {
            "gpt-4o-mini": 2,
            "other": 1,
        }


def test_a_client_that_dies_is_no_problem(clients: list[Client]) -> None:
    """A killed worker's call ends when the provider has its answer, as in real life."""
    with Provider(Model(concurrency=1)) as provider:
        provider.hold.clear()
        dying = client(clients, provider.url)
        body = '{"model": "gpt-4o-mini", "messages": [{"content": "hello"}]}'
        dying._connection.request("POST", "/v1/chat/completions", body)  # noqa: SLF001
        until(lambda: provider.account().calls == 1, "the call is under way")
        dying.close()
        assert client(clients, provider.url).chat()[0] == 429
        provider.hold.set()
        until(lambda: provider.calls()[0].ended is not None, "its answer is ready")
        assert client(clients, provider.url).chat()[0] == 200


def test_latency_is_fixed_or_drawn(clients: list[Client]) -> None:
    models = {"fixed": Model(latency=0.05), "drawn": Model(latency=(0.01, 0.04))}
    with Provider(models, seed=1) as provider:
        one = client(clients, provider.url)
        for name in models:
            for _ in range(3):
                assert one.chat(model=name)[0] == 200
        took = {
            name: [(call.ended or 0) - call.at for call in provider.calls(name)] for name in models
        }
        assert min(took["fixed"]) >= 0.05
        assert min(took["drawn"]) >= 0.01
        assert len(set(took["drawn"])) == 3


def test_the_stub_runs_in_a_separate_process(clients: list[Client]) -> None:
    """Eight callers, one count."""
    with provider_process({"m": Model(requests_per_minute=20, concurrency=8)}) as remote:
        together = threading.Barrier(8)

        def call() -> list[int]:
            one = client(clients, remote.url)
            together.wait(30)
            return [one.chat(model="m")[0] for _ in range(3)]

        with ThreadPoolExecutor(8) as pool:
            statuses = [
                status for one in [pool.submit(call) for _ in range(8)] for status in one.result()
            ]
        assert sorted(statuses) == [200] * 20 + [429] * 4
        account = remote.account()
        assert (account.calls, account.served, account.refused) == (24, 20, 4)
        assert account.over == {"requests_per_minute": 4}
        remote.set_model("m", Model(latency=(0.0, 0.01)))
        remote.refuse()
        remote.fail()
        remote.confuse(1, "nan")
        one = client(clients, remote.url)
        assert [one.chat(model="m")[0] for _ in range(3)] == [429, 503, 200]
        with pytest.raises(ValueError, match="cannot be read"):
            remote.confuse(1, "other")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0ms"),
        (0.02, "20ms"),
        (1, "1s"),
        (1.5, "1.5s"),
        (59.9996, "1m0s"),
        (360, "6m0s"),
        (3661.25, "1h1m1.25s"),
        (-1, "0ms"),
    ],
)
def test_durations_are_written_as_openai_does(seconds: float, text: str) -> None:
    assert duration(seconds) == text
