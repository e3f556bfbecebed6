"""A process that forks after its first job, as servers that load the application first do."""

import os
import subprocess
import sys

from tests.support.databases import Database

_SCRIPT = """
import os, sys
from trunkline import Trunkline

app = Trunkline(sys.argv[1])

@app.task
def work(number: int) -> int:
    return number

work.sync.enqueue(0)
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        own = [work.sync.enqueue(number).id for number in range(30)]
        right = [app.sync.jobs.get(job).payload["number"] for job in own] == list(range(30))
        app.sync.close()
        os._exit(0 if right and len(set(own)) == 30 else 1)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
work.sync.enqueue(31)
print(codes)
app.sync.close()
"""


def test_children_do_not_share_the_connections_of_their_parent(database: Database) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, database.dsn],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=dict(os.environ),
    )
    assert (done.stdout.strip(), done.returncode) == ("[0, 0, 0, 0]", 0), done.stderr
    count = database.superuser().execute("select count(*) from trunkline.jobs").fetchone()
    assert count == (4 * 30 + 2,)
