"""A provider of models with rate limits: real HTTP, real windows, an exact account.

POST /v1/chat/completions responds as OpenAI's. GET /stub/account returns the accounts by model.
POST /stub/refuse, /stub/confuse and /stub/fail cause errors, and /stub/models sets limits.

To run it in a separate process for several workers:

    python -m trunkline_profiles.clinical.stubs.provider --model gpt-4o-mini='{"concurrency": 4}'
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import ceil
from types import TracebackType
from typing import Any, Final, Self

from trunkline_profiles.clinical.stubs import answers, headers
from trunkline_profiles.clinical.stubs.limits import Account, Call, Model, Window

__all__ = ["DEFAULT_MODEL", "Account", "Call", "Model", "Provider", "model_from"]

DEFAULT_MODEL: Final = "gpt-4o-mini"

Answer = tuple[int, dict[str, str], bytes]
# The text of a model's response to a request.
Write = Callable[[Mapping[str, Any]], str]


class _Trouble:
    """Orders for coming calls; each order applies to one call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders: list[tuple[str | None, Any]] = []

    def order(self, model: str | None, times: int, what: Any) -> None:
        with self._lock:
            self._orders += [(model, what)] * times

    def take(self, model: str) -> Any:
        """The first order for this model or for any, or None."""
        with self._lock:
            for index, (wanted, what) in enumerate(self._orders):
                if wanted in {None, model}:
                    del self._orders[index]
                    return what
        return None


class Provider:
    """Serves on a local port until closed.

    While ``hold`` is cleared, no response is sent, so a test can stop within a call.
    """

    def __init__(
        self,
        models: Mapping[str, Model] | Model | None = None,
        *,
        port: int = 0,
        key: str | None = None,
        write: Write = answers.write,
        clock: Callable[[], float] = time.monotonic,
        seed: int | None = None,
    ) -> None:
        if models is None or isinstance(models, Model):
            models = {DEFAULT_MODEL: models or Model()}
        self.hold = threading.Event()
        self.hold.set()
        self._clock = clock
        self._windows = {name: Window(model, clock) for name, model in models.items()}
        self._key = key
        self._write = write
        self._random = random.Random(seed)  # noqa: S311 - latencies, not secrets
        self._refusals, self._confusions, self._failures = _Trouble(), _Trouble(), _Trouble()
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", port), _handler(self))
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def account(self, model: str | None = None) -> Account:
        """The account of a model; without a name, of the only one."""
        return self._window(model).account()

    def accounts(self) -> dict[str, Account]:
        """The accounts by model."""
        return {name: window.account() for name, window in self._windows.items()}

    def calls(self, model: str | None = None) -> list[Call]:
        """Every call with its arrival, in order."""
        return self._window(model).calls()

    def under_way(self, model: str | None = None) -> int:
        """How many calls have no response yet."""
        return self._window(model).under_way()

    def set_model(self, name: str, model: Model) -> None:
        """Change the settings from now on; earlier calls stay in the account."""
        if name in self._windows:
            self._windows[name].model = model
        else:
            self._windows[name] = Window(model, self._clock)

    def refuse(
        self, times: int = 1, *, retry_after: float | None = 1.0, model: str | None = None
    ) -> None:
        """Refuse the next calls with 429 even if there is room; None omits Retry-After."""
        self._refusals.order(model, times, (retry_after,))

    def confuse(self, times: int = 1, kind: str = "words", *, model: str | None = None) -> None:
        """Put invalid values into the headers of the next responses, see `headers.NONSENSE`."""
        self._confusions.order(model, times, headers.NONSENSE[kind])

    def fail(self, times: int = 1, *, status: int = 503, model: str | None = None) -> None:
        """Respond to the next calls with a server error."""
        self._failures.order(model, times, status)

    def handle(self, method: str, path: str, given: Mapping[str, str], body: bytes) -> Answer:
        """Respond to one request."""
        match method, path:
            case "POST", "/v1/chat/completions":
                if self._key is not None and given.get("authorization") != f"Bearer {self._key}":
                    return _problem(401, "invalid_api_key", "The key is missing or wrong")
                return self._chat(body)
            case "GET", "/stub/account":
                return _json(200, {name: a.as_json() for name, a in self.accounts().items()})
            case "POST", order if order.startswith("/stub/"):
                return self._obey(order.removeprefix("/stub/"), body)
            case _:
                return _problem(404, "not_found", f"There is no {method} {path}")

    def close(self) -> None:
        self._closing.set()
        self.hold.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _window(self, name: str | None) -> Window:
        if name is None:
            (found,) = self._windows.values()
            return found
        return self._windows[name]

    def _chat(self, body: bytes) -> Answer:
        request = _request(body)
        if request is None:
            return _problem(400, "invalid_request_error", "A model and its messages are needed")
        name = request["model"]
        window = self._windows.get(name)
        if window is None:
            return _problem(404, "model_not_found", f"There is no model {name!r}")
        text = self._write(request)
        prompt = sum(_tokens(str(message["content"])) for message in request["messages"])
        total = self._drawn(window.model.tokens)
        total = prompt + _tokens(text) if total is None else int(total)
        refusal = self._refusals.take(name)
        verdict = window.arrive(total, demanded=refusal is not None)
        call = verdict.call
        if call.refused:
            wait = refusal[0] if refusal is not None else verdict.retry_after
            reply_headers = self._headers(name, window, wait)
            return _problem(429, "rate_limit_exceeded", f"Too many: {call.refused}", reply_headers)
        status = self._failures.take(name)
        self._closing.wait(self._drawn(window.model.latency) or 0.0)
        self.hold.wait()
        window.end(call)
        reply_headers = self._headers(name, window)
        if status is not None:
            return _problem(status, "server_error", "The model is not well", reply_headers)
        usage = {"prompt_tokens": min(prompt, total), "completion_tokens": max(total - prompt, 0)}
        return _json(
            200,
            {
                "id": f"chatcmpl-{self._random.getrandbits(64):016x}",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": name,
                "choices": [
                    {
                        "index": 0,
                        "message": {"role": "assistant", "content": text},
                        "finish_reason": "stop",
                    }
                ],
                "usage": usage | {"total_tokens": total},
            },
            reply_headers,
        )

    def _headers(self, name: str, window: Window, wait: float | None = None) -> dict[str, str]:
        """The headers about limits, or the ordered invalid ones."""
        values = headers.current(window.model, window.room())
        if wait is not None:
            values["Retry-After"] = headers.retry_after(wait, as_date=window.model.date)
        nonsense = self._confusions.take(name)
        return values if nonsense is None else dict.fromkeys(headers.ALL, nonsense)

    def _drawn(self, setting: float | tuple[float, float] | None) -> float | None:
        if isinstance(setting, tuple):
            return self._random.uniform(*setting)
        return setting

    def _obey(self, order: str, body: bytes) -> Answer:
        """Accept an order over HTTP, for a provider in a separate process."""
        try:
            given = json.loads(body or b"{}")
            match order:
                case "refuse":
                    self.refuse(**given)
                case "confuse":
                    self.confuse(**given)
                case "fail":
                    self.fail(**given)
                case "models":
                    for name, settings in given.items():
                        self.set_model(name, model_from(settings))
                case _:
                    return _problem(404, "not_found", f"There is no order {order!r}")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            return _problem(400, "invalid_request_error", f"That order cannot be read: {error}")
        return _json(200, {})


def model_from(settings: Mapping[str, Any]) -> Model:
    """A model from JSON, where a pair is a list."""
    found: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()
    }
    return Model(**found)


def _request(body: bytes) -> dict[str, Any] | None:
    """The request, if it has a model and messages."""
    try:
        request: dict[str, Any] = json.loads(body)
        known = isinstance(request["model"], str) and request["messages"][0]["content"]
        known = known and all("content" in message for message in request["messages"])
    except (ValueError, LookupError, TypeError):
        return None
    return request if known else None


def _tokens(text: str) -> int:
    """About as many tokens as a real tokenizer finds in English."""
    return ceil(len(text) / 4)


def _json(status: int, value: Any, more: Mapping[str, str] | None = None) -> Answer:
    found = {"Content-Type": "application/json", **(more or {})}
    return status, found, json.dumps(value).encode()


def _problem(status: int, code: str, message: str, more: Mapping[str, str] | None = None) -> Answer:
    return _json(status, {"error": {"type": code, "code": code, "message": message}}, more)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # Many workers may connect at the same moment.
    request_queue_size = 512


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        # Keep-alive, because real clients use it.
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_GET(self) -> None:
            self._serve("GET")

        def do_POST(self) -> None:
            self._serve("POST")

        def _serve(self, method: str) -> None:
            try:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                given = {name.lower(): value for name, value in self.headers.items()}
                status, more, data = provider.handle(method, self.path, given, body)
                self.send_response(status)
                for name, value in more.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
                self.wfile.flush()
            except OSError:
                # The client died while it waited; tests do this on purpose.
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as inherited
            """Log nothing; the account has every call."""

    return Handler


def main(arguments: list[str] | None = None) -> None:
    """Serve until a signal; the first line printed is the address."""
    parser = argparse.ArgumentParser(prog="provider", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--key", help="the key that callers must show")
    parser.add_argument("--seed", type=int, help="draw the same latencies every time")
    parser.add_argument(
        "--model", action="append", default=[], metavar="NAME=JSON", help="settings of a model"
    )
    given = parser.parse_args(arguments)
    models = {}
    for one in given.model:
        name, _, settings = one.partition("=")
        models[name] = model_from(json.loads(settings or "{}"))
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with Provider(models or None, port=given.port, key=given.key, seed=given.seed) as provider:
        print(provider.url, flush=True)
        stop.wait()


if __name__ == "__main__":
    main()
