"""Handlers that upload from a separate process."""

from trunkline import SyncContext, Trunkline

app = Trunkline()


@app.task(process=True)
def render(ctx: SyncContext, text: str) -> str:
    uploaded = ctx.artifact("page.txt", text.encode())
    return uploaded.sha256


@app.task(process=True)
def large(size: int) -> str:
    return "x" * size
