"""``trunkline profile`` for a roll-out: what operators type, and what programs read."""

import psycopg
import pytest

from profiles.tests.clinical.conftest import Clinic
from profiles.tests.executor.test_cli import answer, trunkline
from tests.support.databases import Database


def test_cp_90_steps_from_the_command_line(clinic: Clinic) -> None:
    """CP-90, CP-89: tried, taken, listed with who and when; a refused one has an exit code."""
    database = clinic.database
    tried = answer(database, "step", "clinical", "rollback", "enqueue_off", "--dry-run")
    assert (tried["outcome"], tried["dry_run"]) == ("would_do", True)
    assert clinic.operator.value("select clinical.configured('queue.v3_enqueue_enabled')") == "true"
    text = trunkline(database, "step", "clinical", "rollback", "enqueue_off").stdout
    assert "rollback enqueue_off: done" in text
    with pytest.raises(psycopg.Error, match="enqueue disabled"):
        clinic.enqueue()
    refused = trunkline(database, "step", "clinical", "cutover", "remove_legacy", code=1).stdout
    assert "functions_healthy comes first" in refused
    found = {one["step"]: one for one in answer(database, "steps", "clinical", "rollback")}
    assert found["enqueue_off"]["outcome"] == "done"
    assert found["enqueue_off"]["actor"]
    assert found["verify"]["outcome"] is None
    listed = trunkline(database, "steps", "clinical").stdout
    assert "maintenance_on" in listed
    assert "T+30" in listed


def test_cp_87_the_checklist_from_the_command_line(clinic: Clinic) -> None:
    """CP-87: open points have an exit code, and say what is missing."""
    database = clinic.database
    text = trunkline(database, "check", "clinical", code=1).stdout
    assert "ticked  security" in text
    assert "0 of 12 older functions" in text
    seen = ("--evidence", "two hosts, key only there")
    trunkline(database, "step", "clinical", "checklist", "worker", *seen)
    found = {one["step"]: one for one in answer(database, "check", "clinical", code=1)}
    assert found["worker"]["evidence"] == "two hosts, key only there"
    assert found["rollback_rehearsed"]["outcome"] == "refused"


def test_cp_103_health_endpoints_are_asked(clinic: Clinic, health: str) -> None:
    """CP-103, CP-88: one that does not answer refuses the step, and so does asking none."""
    step = ("step", "clinical", "cutover", "functions_healthy")
    nobody = ("--health", "http://127.0.0.1:9/health")
    refused = answer(clinic.database, *step, *nobody, code=1)
    assert "did not answer" in refused["detail"]["problems"][0]
    refused = answer(clinic.database, *step, code=1)
    assert refused["detail"]["problems"] == ["state with evidence how it was verified"]
    done = answer(clinic.database, *step, "--health", f"{health}/ok")
    assert (done["outcome"], done["evidence"]) == ("done", f"asked {health}/ok")


def test_cp_85_an_installation_is_tried_first(database: Database) -> None:
    """CP-85, CP-90: --dry-run says what would be applied and applies nothing."""
    text = trunkline(database, "install", "clinical", "--all", "--dry-run").stdout
    assert "would be applied" in text
    assert "phase2/migration" in text
    assert "missing" in trunkline(database, "status", "clinical", code=1).stdout
    trunkline(database, "install", "clinical", "--all")
    trunkline(database, "status", "clinical")
    steps = answer(database, "rollback", "clinical", "--yes")["steps"]
    assert steps == ["drop_functions"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("steps", "executor"), "no steps of a roll-out"),
        (("validate", "clinical"), "has no validation tests"),
        (("wake", "clinical", "--once"), "has no wake-ups"),
        (("take-over", "clinical", "jobs", "nowhere.jobs"), "no table nowhere.jobs"),
        (("step", "clinical", "cutover", "jump"), "no step jump"),
    ],
)
def test_refusals_of_commands(clinic: Clinic, arguments: tuple[str, ...], text: str) -> None:
    """CP-90: what there is not is said."""
    assert text in trunkline(clinic.database, *arguments, code=1).stderr
