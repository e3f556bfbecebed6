"""Procrastinate's worker, run in its own environment."""

import uvloop

from bench.rivals.procrastinate_app import app


async def _main() -> None:
    async with app.open_async():
        await app.run_worker_async(concurrency=100, install_signal_handlers=True)


if __name__ == "__main__":
    uvloop.run(_main())
