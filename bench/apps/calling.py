"""The application of workers that call a provider: ``trunkline worker bench.apps.calling:app``."""

import json
import os
from http.client import HTTPConnection
from urllib.parse import urlsplit

from trunkline import Backoff, SyncContext, Trunkline

__all__ = ["LIMIT", "MODEL", "PROVIDER_VARIABLE", "app"]

PROVIDER_VARIABLE = "TRUNKLINE_BENCH_PROVIDER"
MODEL = "model"
LIMIT = f"provider/{MODEL}"

_TIMEOUT = 30.0
_AT_ONCE = Backoff(base=0, factor=1, cap=0, jitter=0)

app = Trunkline()


@app.task(limit=LIMIT, max_attempts=1000, crash_limit=1000, backoff=_AT_ONCE)
def ask(ctx: SyncContext, tokens: int, settles: bool = False) -> int:
    """Ask the model something that takes so many tokens, as the provider counts them."""
    connection = HTTPConnection(urlsplit(os.environ[PROVIDER_VARIABLE]).netloc, timeout=_TIMEOUT)
    try:
        content = "word" * tokens
        body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": content}]})
        connection.request("POST", "/v1/chat/completions", body)
        answer = connection.getresponse()
        answer.read()
    finally:
        connection.close()
    if settles:
        ctx.settle(tokens=tokens)
    return answer.status
