"""A handler that forks: its child has everything it had open."""

import os
import signal
import time

from trunkline import Trunkline

app = Trunkline()


@app.task(process=True)
def forks() -> None:
    if os.fork() == 0:
        time.sleep(30)
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(process=True)
def add(a: int, b: int) -> int:
    return a + b
