"""An order and its job commit together; a worker sends the receipt and returns the result."""

import asyncio
import os

import psycopg

from trunkline import Trunkline

app = Trunkline()


@app.task(max_attempts=5)
async def send_receipt(order: int, email: str) -> str:
    return f"receipt for order {order} sent to {email}"


async def main() -> None:
    dsn = os.environ["TRUNKLINE_DSN"]
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        # The order and its job commit together when the block ends, or neither exists.
        await connection.execute("create table if not exists orders (number int)")
        await connection.execute("insert into orders values (1)")
        job = await send_receipt.options(connection=connection).enqueue(1, "ann@example.com")
    print(await job.wait(timeout=30))
    await app.close()


if __name__ == "__main__":
    asyncio.run(main())
