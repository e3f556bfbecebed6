"""Calls about workflows and steps, which a session for tenant a makes on what is tenant b's."""

from __future__ import annotations

from typing import Any, Final

from tests.integration.security.conftest import STATES

__all__ = ["FLOW_CALLS"]

STALE_ATTEMPT, UNKNOWN_JOB, DENIED, UNKNOWN_WORKFLOW = "TL009", "TL015", "TL017", "TL043"
THEIRS = "'worker_b', array[<b running>], '{1}'"
LOST: list[tuple[Any, ...]] = [("lost", "gone")]

# Function → (role, call, expected), as in test_tenants.
FLOW_CALLS: Final[dict[str, list[tuple[str, str, str | list[tuple[Any, ...]]]]]] = {
    "cancel_workflow": [("producer", "trunkline.cancel_workflow(<b workflow>)", UNKNOWN_WORKFLOW)],
    "delete_workflow": [("operator", "trunkline.delete_workflow(<b workflow>)", UNKNOWN_WORKFLOW)],
    "dependency_results": [
        ("worker", "trunkline.dependency_results('worker_b', <b running>, 1, 'x')", STALE_ATTEMPT)
    ],
    "emit": [("worker", f"trunkline.emit({THEIRS}, '{{1}}', '{{x}}')", [(["lost"],)])],
    "follow": [
        ("producer", "trunkline.follow(array[<b running>])", [([],)]),
        ("producer", "trunkline.follow(array[<b workflow>])", [([],)]),
    ],
    "live_jobs": [
        ("producer", f"trunkline.live_jobs(array[<b {state}>], '{{0}}', '{{0}}')", [])
        for state in STATES
    ],
    "live_workflows": [("producer", "trunkline.live_workflows(array[<b workflow>])", [])],
    "find_workflows": [("producer", "trunkline.find_workflows(p_tenant => 'b')", [([],)])],
    "job_workflow": [
        ("worker", "trunkline.job_workflow('worker_b', <b running>, 1)", STALE_ATTEMPT)
    ],
    "workflow_jobs": [("producer", "trunkline.workflow_jobs(<b workflow>)", UNKNOWN_WORKFLOW)],
    "workflow_progress": [
        ("producer", "trunkline.workflow_progress(<b workflow>)", UNKNOWN_WORKFLOW)
    ],
    "workflow_results": [
        ("producer", "trunkline.workflow_results(<b workflow>, 'none_b')", UNKNOWN_WORKFLOW)
    ],
    "rerun_workflow": [("operator", "trunkline.rerun_workflow(<b workflow>)", UNKNOWN_WORKFLOW)],
    "retry_workflow": [("operator", "trunkline.retry_workflow(<b workflow>)", UNKNOWN_WORKFLOW)],
    "start_workflow": [
        ("producer", """trunkline.start_workflow('{"name": "x", "tenant": "b"}')""", DENIED)
    ],
    "begin_jobs": [
        ("worker", "trunkline.begin_jobs('worker_b', <b running>, 1, 1, 'k', '[]')", STALE_ATTEMPT)
    ],
    "begin_once": [
        ("worker", "trunkline.begin_once('worker_b', <b running>, 1, 1, 'x')", STALE_ATTEMPT)
    ],
    "begin_wait": [
        (
            "worker",
            "trunkline.begin_wait('worker_b', <b running>, 1, 1, 'event', 'x', '#1')",
            STALE_ATTEMPT,
        )
    ],
    "child_results": [
        (
            "worker",
            "trunkline.child_results('worker_b', <b running>, 1, <b workflow>, 'x')",
            STALE_ATTEMPT,
        )
    ],
    "job_steps": [
        ("producer", f"trunkline.job_steps(<b {state}>)", UNKNOWN_JOB) for state in STATES
    ],
    "record_once": [
        ("worker", "trunkline.record_once('worker_b', <b running>, 1, 'x', '1')", STALE_ATTEMPT)
    ],
    "record_steps": [
        (
            "worker",
            f"trunkline.record_steps({THEIRS}, '{{1}}', '{{x}}', '{{#1}}', '{{0}}', '{{1}}')",
            [(["lost"],)],
        )
    ],
    "recorded_steps": [
        ("worker", "trunkline.recorded_steps('worker_b', <b running>, 1)", STALE_ATTEMPT)
    ],
    "reset_step": [
        ("operator", f"trunkline.reset_step(<b {state}>, 'x')", UNKNOWN_JOB) for state in STATES
    ],
    "retry_fresh": [
        ("operator", f"trunkline.retry_fresh(<b {state}>)", UNKNOWN_JOB) for state in STATES
    ],
    "send_event": [
        *(
            ("producer", f"trunkline.send_event('x', '1', <b {state}>)", UNKNOWN_JOB)
            for state in STATES
        ),
        ("producer", "trunkline.send_event('x', '1', p_key => 'k', p_tenant => 'b')", DENIED),
    ],
    "suspend": [("worker", f"trunkline.suspend({THEIRS})", LOST)],
}
