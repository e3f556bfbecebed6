"""Handlers in processes of their own that take of limits."""

from typing import Any

from trunkline import Context, Trunkline

app = Trunkline()


@app.task(process=True)
def granted(ctx: Context, model: str) -> list[bool]:
    with ctx.grant("api/{model}", tokens=100) as grant:
        return [bool(grant.settle(tokens=40, cost=0.5)), bool(grant.settle(tokens=1))]


@app.task(process=True, limit="api/{model}", cost={"tokens": 100})
def settled(ctx: Context, model: str) -> list[bool]:
    return [bool(ctx.settle(tokens=30)), bool(ctx.settle(tokens=1))]


@app.task(process=True)
def impatient(ctx: Context) -> None:
    with ctx.grant("busy", wait=False):
        raise AssertionError("there was room")


@app.task(process=True)
def patient(ctx: Context) -> None:
    with ctx.grant("busy"):
        raise AssertionError("there was room")


@app.task(process=True, limit="openai")
def calls(ctx: Context, url: str) -> Any:
    answer = ctx.http.post(
        url, json={"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hello"}]}
    )
    return answer.json()["usage"]["total_tokens"]
