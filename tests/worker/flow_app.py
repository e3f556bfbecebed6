"""Handlers in processes of their own that take of limits."""

from typing import Any

from trunkline import SyncContext, Trunkline

app = Trunkline()


@app.task(process=True)
def granted(ctx: SyncContext, model: str) -> list[bool]:
    with ctx.grant("api/{model}", tokens=100) as grant:
        return [grant.settle(tokens=40, cost=0.5), grant.settle(tokens=1)]


@app.task(process=True, limit="api/{model}", cost={"tokens": 100})
def settled(ctx: SyncContext, model: str) -> list[bool]:
    return [ctx.settle(tokens=30), ctx.settle(tokens=1)]


@app.task(process=True)
def impatient(ctx: SyncContext) -> None:
    with ctx.grant("busy", wait=False):
        raise AssertionError("there was room")


@app.task(process=True)
def patient(ctx: SyncContext) -> None:
    with ctx.grant("busy"):
        raise AssertionError("there was room")


@app.task(process=True, limit="openai")
def calls(ctx: SyncContext, url: str) -> Any:
    answer = ctx.http.post(
        url, json={"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hello"}]}
    )
    return answer.json()["usage"]["total_tokens"]
