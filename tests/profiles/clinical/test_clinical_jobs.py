"""Jobs: the record, the way in and the claim."""

from tests.profiles.clinical.conftest import TYPES, Clinic


def test_cp_10_there_are_twelve_types(clinic: Clinic) -> None:
    """CP-10, CP-09: and each can be enqueued."""
    for kind in TYPES:
        clinic.enqueue(kind)
    assert {row.job_type for row in clinic.rows("select job_type from clinical.job_queue")} == set(
        TYPES
    )
