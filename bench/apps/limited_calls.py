"""The application that compares calls of ctx.http with those of a plain httpx2 client."""

import time

import httpx2

from trunkline import Context, SyncContext, Trunkline

__all__ = ["LIMIT", "app"]

LIMIT = "provider"

app = Trunkline()


@app.task(limit=LIMIT)
async def in_loop(ctx: Context, url: str, calls: int, limited: bool) -> float:
    """Send the requests one after the other; return the processor time of this process."""
    client = ctx.http if limited else httpx2.AsyncClient(trust_env=False)
    await client.get(url)
    begin = time.process_time()
    for _ in range(calls):
        await client.get(url)
    used = time.process_time() - begin
    await client.aclose()
    return used


@app.task(limit=LIMIT)
def in_thread(ctx: SyncContext, url: str, calls: int, limited: bool) -> float:
    """Do the same in a thread."""
    client = ctx.http if limited else httpx2.Client(trust_env=False)
    client.get(url)
    begin = time.process_time()
    for _ in range(calls):
        client.get(url)
    used = time.process_time() - begin
    client.close()
    return used
