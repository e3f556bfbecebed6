"""Calls about artifacts, which a session that acts for tenant a makes on what is tenant b's."""

from __future__ import annotations

from typing import Final

__all__ = ["ARTIFACT_CALLS", "STORE_CALLS"]

STALE_ATTEMPT, NEEDS_ALL, UNKNOWN_ARTIFACT, INVALID_ARTIFACT = "TL009", "TL036", "TL056", "TL058"
_FILE = f"7, '{'0' * 64}'"
_STATES = ("kept", "deleted")

# Function → (role, call, expected), as in test_tenants. <b begun> is an upload of b's running job.
ARTIFACT_CALLS: Final[dict[str, list[tuple[str, str, str | list[tuple[object, ...]]]]]] = {
    "abandon_artifact": [
        (
            "worker",
            "trunkline.abandon_artifact('worker_b', <b running>, 1, <b begun>)",
            STALE_ATTEMPT,
        ),
        # The attempt is the caller's, the upload is not.
        (
            "worker",
            "trunkline.abandon_artifact('worker_a', <a running>, 1, <b begun>)",
            [(False,)],
        ),
    ],
    "artifact": [
        ("producer", f"trunkline.artifact(<b {state}>)", UNKNOWN_ARTIFACT) for state in _STATES
    ],
    "artifact_upload": [
        (
            "worker",
            "trunkline.artifact_upload('worker_b', <b running>, 1, <b begun>)",
            STALE_ATTEMPT,
        ),
        (
            "worker",
            "trunkline.artifact_upload('worker_a', <a running>, 1, <b begun>)",
            UNKNOWN_ARTIFACT,
        ),
    ],
    "begin_artifact": [
        (
            "worker",
            "trunkline.begin_artifact('worker_b', <b running>, 1, 'x', p_bytes => 1)",
            STALE_ATTEMPT,
        ),
    ],
    "delete_artifact": [
        (role, f"trunkline.delete_artifact(<b {state}>)", UNKNOWN_ARTIFACT)
        for state in _STATES
        for role in ("producer", "operator")
    ],
    "list_artifacts": [
        ("producer", "trunkline.list_artifacts(p_job => <b completed>, p_deleted => true)", []),
        ("producer", "trunkline.list_artifacts(p_name => 'kept_b')", []),
        ("reader", "trunkline.list_artifacts(p_name => 'deleted_b', p_deleted => true)", []),
    ],
    "reserve_storage": [
        (
            "worker",
            "trunkline.reserve_storage('worker_b', <b running>, 1, <b begun>, 9)",
            STALE_ATTEMPT,
        ),
        (
            "worker",
            "trunkline.reserve_storage('worker_a', <a running>, 1, <b begun>, 9)",
            UNKNOWN_ARTIFACT,
        ),
    ],
    "set_artifact_retention": [
        ("operator", "trunkline.set_artifact_retention('song', '1 day')", NEEDS_ALL)
    ],
    "set_storage_quota": [("operator", "trunkline.set_storage_quota('b', 1)", NEEDS_ALL)],
    "stage_artifact": [
        (
            "worker",
            f"trunkline.stage_artifact('worker_b', <b running>, 1, <b path>, {_FILE})",
            STALE_ATTEMPT,
        ),
        (
            "worker",
            f"trunkline.stage_artifact('worker_a', <a running>, 1, <b path>, {_FILE})",
            INVALID_ARTIFACT,
        ),
    ],
    "stage_elements": [
        (
            "worker",
            "trunkline.stage_elements('worker_b', <b running>, 1, <b begun>, 1)",
            STALE_ATTEMPT,
        ),
        (
            "worker",
            "trunkline.stage_elements('worker_a', <a running>, 1, <b begun>, 1)",
            UNKNOWN_ARTIFACT,
        ),
    ],
}

# The sweep of the store: its rows are files of all tenants, so a session that acts for one
# neither receives nor changes any. Function → (call by the worker that has the sweep, answer to a
# session for all, answer to one for tenant a).
STORE_CALLS: Final[dict[str, tuple[str, object, list[tuple[object, ...]]]]] = {
    "artifacts_to_check": ("trunkline.artifacts_to_check('sweeper')", {"kept_a", "kept_b"}, []),
    "report_checked": (
        "trunkline.report_checked('sweeper', null, array[<b kept>], '{}')",
        [(1,)],
        [(0,)],
    ),
    "report_files": ("trunkline.report_files('sweeper', '{t-b/x}', 't-b/y')", [(1,)], [(0,)]),
    "report_removals": ("trunkline.report_removals('sweeper', array[<b gone>])", [(1,)], [(0,)]),
    "take_removals": ("trunkline.take_removals('sweeper')", {"deleted_a", "deleted_b"}, []),
    "take_sweep": ("trunkline.take_sweep('sweeper')", 1, []),
}
