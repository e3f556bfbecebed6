from tests.support.databases import Database
from psycopg.types.json import Jsonb
def test_late(database: Database) -> None:
    prod = database.connect("trunkline_producer", autocommit=False)
    work = database.connect("trunkline_worker")
    prod.execute("select trunkline.register_task('t')"); prod.commit()
    pos = {}
    def claim():
        nonlocal pos
        rows = work.execute("select job_id, position from trunkline.claim('w', null, 10, null, %s)", (Jsonb(pos),)).fetchall()
        pos = rows[-1][1]
        print(pos)
        return [r[0] for r in rows if r[0]]
    prod.execute("select trunkline.enqueue('t')")
    for _ in range(4): claim()
    prod.commit()
    got = []
    for _ in range(4): got += claim()
    assert got
