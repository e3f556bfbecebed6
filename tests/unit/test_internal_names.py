"""Tests reach internal tables only through ``tests/support``.

So a renamed table or column changes the helpers and no test.
"""

from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[1]
_PROFILES = "profiles/tests"
_SCHEMA = "trunkline" + "_internal"

# Helpers, and tests of the installed schema itself.
_FOLDERS = ("support", "migrations")
# These tests are about the internal schema: who may touch it, what it has, how it is linted.
_SUBJECT = {
    "integration/catalog/test_hygiene.py",
    "integration/catalog/test_plpgsql_check.py",
    "integration/catalog/test_privileges.py",
    "integration/security/test_claims.py",
    "integration/security/test_second_wall.py",
    "profiles/tests/clinical/test_cp_plpgsql_check.py",
    "profiles/tests/clinical/test_cp_security.py",
    "profiles/tests/executor/test_phases.py",
    "profiles/tests/executor/test_walls.py",
    "sql/schema/has_the_indexes_that_hot_queries_need.sql",
    "unit/mutants/test_sites.py",
    "unit/test_job_row.py",
    "unit/test_sql_lint.py",
}
# Not converted to helpers yet. Take a file out when it is; never add one.
_NOT_YET = {
    "backup/test_files.py",
    "bench/test_soak.py",
    "chaos/scene.py",
    "chaos/test_audit.py",
    "chaos/test_clock.py",
    "cli/test_bench.py",
    "cli/test_doctor.py",
    "cli/test_settings_of_sessions.py",
    "cli/test_settings_tasks_duties.py",
    "client/test_jobs.py",
    "client/test_limits.py",
    "integration/bad_input/conftest.py",
    "integration/bad_input/test_refusals.py",
    "integration/bad_input/test_register.py",
    "integration/bad_input/test_sizes.py",
    "integration/schedules/test_once.py",
    "integration/schedules/test_schedules.py",
    "integration/security/conftest.py",
    "integration/security/test_hostile_settings.py",
    "integration/security/test_narrowed.py",
    "integration/security/test_tenants.py",
    "plans/filling.py",
    "plans/measuring.py",
    "plans/test_lists.py",
    "plans/test_operator_reads.py",
    "plans/test_plans.py",
    "profiles/tests/clinical/test_cp_audit.py",
    "profiles/tests/clinical/test_cp_claim.py",
    "profiles/tests/executor/test_reclaim.py",
    "profiles/tests/executor/test_record.py",
    "profiles/tests/executor/test_validation.py",
    "profiles/tests/executor/test_wake_ups.py",
    "property/limiter_machine.py",
    "property/queue_steps.py",
    "property/still.py",
    "worker/test_lost_answers.py",
    "client/test_waiting.py",
    "sql/backoff/grows_to_its_cap_with_jitter.sql",
    "sql/claim/looks_behind_its_place.sql",
    "sql/claim/puts_an_id_aside_that_is_running_already.sql",
    "sql/claim/takes_only_what_is_due.sql",
    "sql/complete/keeps_large_results_apart.sql",
    "sql/complete/keeps_the_result_and_leaves_the_live_tables.sql",
    "sql/enqueue/keeps_large_payloads_apart.sql",
    "sql/job/tells_the_time_of_each_state.sql",
    "sql/maintain_partitions/drops_what_is_past_retention.sql",
    "sql/maintain_partitions/makes_partitions_ahead_and_empties_the_default.sql",
    "sql/maintain_partitions/rescues_payloads_that_jobs_still_need.sql",
    "sql/reclaim/records_its_own_failure_and_tries_again.sql",
    "sql/reclaim/takes_a_job_whose_task_lost_its_policy.sql",
    "sql/register_tasks/registers_many_and_writes_only_what_changed.sql",
    "sql/sleep/keeps_one_flag_per_queue_and_tells_the_next_due_time.sql",
    "sql/wake/takes_back_the_flags_of_one_worker.sql",
}


def _naming(root: Path) -> set[str]:
    """Return the test files that name the internal schema."""
    return {
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.suffix in {".py", ".sql"}
        and path.relative_to(root).parts[0] not in _FOLDERS
        and _SCHEMA in path.read_text(encoding="utf-8")
    }


def _all() -> set[str]:
    profiles = _naming(_TESTS.parent / _PROFILES)
    return _naming(_TESTS) | {f"{_PROFILES}/{name}" for name in profiles}


def test_no_other_test_names_the_internal_schema() -> None:
    assert sorted(_all() - _SUBJECT - _NOT_YET) == []


def test_the_lists_name_no_file_that_does_without() -> None:
    assert sorted((_SUBJECT | _NOT_YET) - _all()) == []


def test_no_file_is_in_both_lists() -> None:
    assert not _SUBJECT & _NOT_YET


@pytest.mark.parametrize("name", ["test_one.py", "flow/scene.py", "sql/claim/takes.sql"])
def test_a_file_that_names_it_is_found(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"select from {_SCHEMA}.waiting", encoding="utf-8")
    assert _naming(tmp_path) == {name}
