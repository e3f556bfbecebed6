"""The application whose database is saved, and which goes on with the restored one."""

from trunkline import Context, Trunkline

__all__ = ["app"]

app = Trunkline()


@app.task(audit=True)
async def note(text: str) -> str:
    """End at once."""
    return text


@app.task(limit="slots")
async def guarded(ctx: Context) -> int:
    """Take one of a few slots."""
    return ctx.attempt


@app.task(limit="shrunk")
async def shrunk(ctx: Context) -> int:
    """Have been set aside while the limit was too small."""
    return ctx.attempt
