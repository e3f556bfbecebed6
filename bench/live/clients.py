"""Clients in a process of their own: ``python -m bench.live.clients PORT KEY COUNT``.

It reads ids of jobs, opens the streams, prints `open`, and after each further line of input prints
the latencies so far as JSON. A change carries the time of its call as its message.
"""

import asyncio
import json
import resource
import sys
import time

__all__: list[str] = []

# More at once would only wait in the server's queue.
_OPENING = 100


async def _follow(port: int, key: str, job: str, opened: asyncio.Event, late: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=16_384)
    request = (
        f"GET /v1/jobs/{job}/events HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\n\r\n"
    )
    writer.write(request.encode())
    await writer.drain()
    status = await reader.readline()
    if b" 200 " not in status:
        raise RuntimeError(f"{status!r} {await reader.read(2000)!r}")
    while line := await reader.readline():
        if not line.startswith(b"data: "):
            continue
        now = time.time()
        opened.set()
        message = json.loads(line[6:]).get("message")
        if message:
            late.append(now - float(message))


async def _main(port: int, key: str, count: int) -> None:
    jobs = [sys.stdin.readline().strip() for _ in range(count)]
    late: list[float] = []
    opening = asyncio.Semaphore(_OPENING)
    followers = []

    async def open_one(job: str) -> None:
        async with opening:
            opened = asyncio.Event()
            follower = asyncio.create_task(_follow(port, key, job, opened, late))
            followers.append(follower)
            waiting = asyncio.create_task(opened.wait())
            await asyncio.wait({follower, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if follower.done():
                follower.result()
                raise RuntimeError("the server closed a stream")

    await asyncio.gather(*map(open_one, jobs))
    print("open", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(late), flush=True)
        late.clear()


if __name__ == "__main__":
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(_main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
