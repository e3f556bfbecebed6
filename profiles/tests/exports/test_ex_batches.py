"""Batches: one request for up to ten documents."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

import pytest
from psycopg.types.json import Jsonb

from profiles.tests.exports.conftest import MIB, Exports, refused


def read(exports: Exports, batch: Any, user: UUID | None = None) -> Any:
    with exports.acting(user) as calls:
        return calls.value("select exports.get_batch(%s)", batch)


def files(exports: Exports, batch: Any, user: UUID | None = None) -> Any:
    with exports.acting(user) as calls:
        return calls.value("select exports.batch_files(%s)", batch)


def test_ex_46_a_batch_has_a_job_for_each_document(exports: Exports) -> None:
    """EX-46, EX-49, EX-85: in the order of the request; the batch is stored with each job."""
    documents = [exports.document(title) for title in "ABC"]
    batch = exports.batch(*documents, templateSlug="compact")
    assert [UUID(job["documentId"]) for job in batch["jobs"]] == documents
    jobs = exports.jobs()
    assert {str(job.id) for job in jobs} == {job["jobId"] for job in batch["jobs"]}
    assert {str(job.batch_id) for job in jobs} == {batch["batchId"]}
    assert {job.options["templateSlug"] for job in jobs} == {"compact"}
    assert len({job.dedupe_key for job in jobs}) == 3
    state = read(exports, batch["batchId"])
    assert (state["status"], state["progress"], state["totalCount"]) == ("pending", 0, 3)


@pytest.mark.parametrize(
    "documents",
    [[], {}, None, "x", ["x"], [1], [None], [str(uuid4())] * 11],
    ids=["empty", "object", "null", "text", "no_id", "number", "nothing", "eleven"],
)
def test_ex_47_a_wrong_list_is_refused(exports: Exports, documents: Any) -> None:
    """EX-47, EX-S06: also eleven times the same document."""
    with refused("EX002"):
        exports.producer.value(
            "select exports.create_export_batch(%s, '{}', %s)", Jsonb(documents), exports.user
        )
    assert exports.jobs() == []


def test_ex_47_ten_are_fine_and_repetitions_are_removed(exports: Exports) -> None:
    """EX-47, EX-S06: nothing is created when one document is not the caller's."""
    documents = [exports.document() for _ in range(9)]
    with refused("EX002"):
        exports.batch(*documents, pageSize="A0")
    with refused("EX001"):
        exports.batch(*documents, exports.document(user=exports.person()))
    assert exports.jobs() == []
    batch = exports.batch(*documents, documents[0])
    assert len(batch["jobs"]) == len(exports.jobs()) == 9
    exports.cancel(UUID(batch["jobs"][0]["jobId"]))
    assert len(exports.batch(*(exports.document() for _ in range(10)))["jobs"]) == 10


def test_ex_48_a_user_with_three_running_exports_waits(exports: Exports) -> None:
    """EX-48, EX-95: for batches only; with room for one export more."""
    exports.unlimited()
    for _ in range(3):
        exports.create()
    exports.claim()
    exports.claim()
    documents = [exports.document(), exports.document()]
    batch = exports.batch(*documents)
    exports.claim()
    with refused("EX010", "please wait"):
        exports.batch(exports.document())
    # An equal live batch is returned, whatever runs.
    assert exports.batch(*documents)["batchId"] == batch["batchId"]
    exports.create()


def test_ex_48_a_batch_needs_room_for_all_its_files(exports: Exports) -> None:
    """EX-48, EX-62, EX-94: an estimate for each document."""
    exports.set(storage_bytes=3 * MIB - 1)
    documents = [exports.document() for _ in range(3)]
    with refused("EX006"):
        exports.batch(*documents)
    assert exports.jobs() == []
    exports.batch(*documents[:2])


def test_ex_49_equal_batches_at_once_are_one(exports: Exports) -> None:
    """EX-14, EX-49, EX-90: in any order of the documents; other options are another batch."""
    documents = [exports.document() for _ in range(2)]
    connections = [exports.database.connect("trunkline_producer") for _ in range(6)]

    def ask(pair: Any) -> Any:
        order = documents if pair[0] % 2 else documents[::-1]
        query = b"select exports.create_export_batch(%s, '{}', %s) ->> 'batchId'"
        arguments = (Jsonb([str(one) for one in order]), exports.user)
        return pair[1].execute(query, arguments).fetchone()[0]

    with ThreadPoolExecutor(6) as pool:
        batches = set(pool.map(ask, enumerate(connections)))
    assert len(batches) == 1
    assert len(exports.jobs()) == 2
    assert exports.batch(*documents, quality="high")["batchId"] not in batches
    # A single export of the same document is none of the batch.
    single = exports.create(documents[0])
    assert exports.job(single).batch_id is None


def test_ex_50_finished_includes_failed_and_cancelled(exports: Exports) -> None:
    """EX-50, EX-52: one failed job does not keep the batch below 100 for ever."""
    batch = exports.batch(*(exports.document(title) for title in "ABC"))["batchId"]
    first, second = exports.claim().id, exports.claim().id
    exports.progress(second, 50)
    exports.complete(first)
    state = read(exports, batch)
    assert (state["status"], state["progress"], state["completedCount"]) == ("processing", 33, 1)
    assert sorted(job["status"] for job in state["jobs"]) == ["completed", "pending", "processing"]
    exports.fail(second, "x", permanent=True)
    third = next(job.id for job in exports.jobs() if job.status == "pending")
    exports.cancel(third)
    state = read(exports, batch)
    assert (state["status"], state["progress"]) == ("partial", 100)
    assert {job["error"] for job in state["jobs"]} == {None, "Cancelled", "The export failed."}


def test_ex_50_a_batch_without_a_completed_job_ends_too(exports: Exports) -> None:
    batch = exports.batch(exports.document(), exports.document())
    for job in batch["jobs"]:
        exports.cancel(UUID(job["jobId"]))
    state = read(exports, batch["batchId"])
    assert (state["status"], state["progress"]) == ("cancelled", 100)
    failed = exports.batch(exports.document())["batchId"]
    exports.fail(exports.claim().id, "x", permanent=True)
    assert read(exports, failed)["status"] == "failed"


def test_ex_51_a_batch_runs_within_the_limit(exports: Exports) -> None:
    """EX-18, EX-51: like other exports, and beside them."""
    exports.batch(*(exports.document() for _ in range(5)))
    other = exports.create(user=exports.person())
    claimed = [exports.claim() for _ in range(4)]
    assert claimed[3] is None
    assert other in {job.id for job in claimed[:3]}
    assert sum(job.batch_id is not None for job in claimed[:3]) == 2


def test_ex_53_the_files_of_a_batch(exports: Exports) -> None:
    """EX-52, EX-53: some, all, none, foreign, and expired."""
    batch = exports.batch(exports.document(), exports.document())["batchId"]
    with refused("EX009"):
        files(exports, batch)
    first, second = exports.claim().id, exports.claim().id
    exports.complete(first)
    found = files(exports, batch)
    assert (found["completedCount"], found["totalCount"]) == (1, 2)
    assert found["completedJobs"] == [str(first)]
    exports.complete(second)
    found = files(exports, batch)
    assert (found["completedCount"], len(found["artifacts"])) == (2, 2)
    other = exports.person()
    assert read(exports, batch, other) is None
    for target, user in ((batch, other), (uuid4(), exports.user)):
        with refused("EX009"):
            files(exports, target, user)
    exports.later("7 days 1 second")
    with refused("EX012"):
        files(exports, batch)
