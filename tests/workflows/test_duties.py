"""The duties of workflows take their turns, so that many workflows do not keep one waiting."""

from __future__ import annotations

from tests.support.internals import workflows
from tests.workflows.flow import Flow, job

# As many workflows as one run of the duty examines in turn, and some more.
_IN_TURN = 60


def test_children_of_an_ended_parent_stop_at_the_next_run(flow: Flow) -> None:
    for _ in range(_IN_TURN):
        flow.start([job("other", delay="1 hour")])
    parents = [flow.producer.enqueue("work").job_id for _ in range(_IN_TURN)]
    children = {
        parent: workflows.start_children(
            flow.admin.connection, parent, {"name": "c", "steps": [job("a", delay="1 hour")]}
        )
        for parent in parents
    }
    attempts = {attempt.job: attempt for attempt in flow.claim().attempts}
    alive, ended = parents[0], parents[1:]
    flow.fail(*(attempts[parent] for parent in ended))
    flow.advance()
    assert {flow.state(children[parent]) for parent in ended} == {"cancelled"}
    assert {flow.workflow(children[parent]).reason for parent in ended} == {"parent ended"}
    assert flow.state(children[alive]) == "queued"
    flow.complete(attempts[alive])
    flow.advance()
    assert flow.state(children[alive]) == "cancelled"


def test_more_lost_children_than_one_run_stops_are_stopped_by_the_next(flow: Flow) -> None:
    parent = flow.producer.enqueue("work").job_id
    children = [
        workflows.start_children(
            flow.admin.connection, parent, {"name": "c", "steps": [job("a", delay="1 hour")]}
        )
        for _ in range(510)
    ]
    flow.fail(*flow.claim().attempts)
    listener = flow.database.connect()
    listener.execute("listen trunkline_duties")
    flow.advance()
    # Workers run it again at once.
    assert {n.payload for n in listener.notifies(timeout=30, stop_after=1)} == {"advance_workflows"}
    flow.advance()
    states = flow.operator.connection.execute(
        "select distinct state from trunkline.workflows where workflow_id = any(%s)", (children,)
    ).fetchall()
    assert states == [("cancelled",)]


def test_maps_that_cannot_be_expanded_keep_no_other_map_waiting(flow: Flow) -> None:
    flow.producer.register("shut", queue="shut", max_attempts=1)

    def start(name: str, task: str) -> object:
        steps = [job("a", items=[{}]), job("m", task=task, map="a")]
        return flow.start(steps, name=name).workflow_id

    held = [start("stuck", "shut") for _ in range(205)]
    free = start("free", "work")
    flow.operator.connection.execute(
        "select trunkline.pause_queue('shut', 'strike', p_refuse_enqueue => true)"
    )
    while attempts := flow.claim().attempts:
        flow.complete(*attempts)
    for _ in range(2):
        flow.expand()
    assert flow.steps(free)["m"] == "open"  # type: ignore[arg-type]
    assert flow.run() == ["m/0"]
    assert flow.state(free) == "completed"  # type: ignore[arg-type]
    flow.operator.connection.execute("select trunkline.resume_queue('shut')")
    for _ in range(3):
        flow.expand()
    assert {flow.workflow(one).jobs for one in held} == {2}  # type: ignore[arg-type]
