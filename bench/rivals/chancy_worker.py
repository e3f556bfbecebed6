"""Chancy's worker, run in its own environment."""

import uvloop
from chancy import Worker  # type: ignore[import-not-found, unused-ignore]

from bench.rivals.chancy_app import open_app


async def _main() -> None:
    async with open_app() as chancy:
        worker = Worker(chancy)
        # Its default of a second is most of the time of a small drain.
        worker.send_outgoing_interval = 0.1
        # It ends on SIGTERM by itself.
        async with worker:
            await worker.wait_for_shutdown()


if __name__ == "__main__":
    uvloop.run(_main())
