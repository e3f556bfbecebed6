"""The application of workers that call a provider: ``trunkline worker bench.apps.calling:app``."""

import os

from trunkline import Backoff, SyncContext, Trunkline

__all__ = ["LIMIT", "MODEL", "PROVIDER_VARIABLE", "app"]

PROVIDER_VARIABLE = "TRUNKLINE_BENCH_PROVIDER"
MODEL = "model"
LIMIT = f"provider/{MODEL}"

_TIMEOUT = 30.0
_AT_ONCE = Backoff(base=0, factor=1, cap=0, jitter=0)

app = Trunkline()


@app.task(limit=LIMIT, max_attempts=1000, crash_limit=1000, backoff=_AT_ONCE)
def ask(ctx: SyncContext, tokens: int) -> int:
    """Send the model a request with this many tokens; its response settles the charge."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": "word" * tokens}]}
    url = os.environ[PROVIDER_VARIABLE] + "/v1/chat/completions"
    return ctx.http.post(url, json=body, timeout=_TIMEOUT).status_code
