"""Configuration: known keys, checked when written, in force at once."""

from collections.abc import Callable

import psycopg
import pytest

from profiles.tests.clinical.conftest import Clinic

SOURCE = {
    "worker.heartbeat_interval_seconds": "30",
    "worker.timeout_seconds": "300",
    "worker.reclaim_jitter_max_seconds": "60",
    "queue.backpressure_delay_seconds": "30",
}


def test_cp_62_the_keys_of_the_source(clinic: Clinic) -> None:
    """CP-62: each with value, type, description and no secret."""
    rows = {r.config_key: r for r in clinic.rows("select * from clinical.system_configuration")}
    assert {key: rows[key].config_value for key in SOURCE} == SOURCE
    for key in SOURCE:
        row = rows[key]
        assert (row.config_type, row.is_sensitive) == ("system", False)
        assert row.description
        assert row.updated_at is not None
    with pytest.raises(psycopg.Error):
        clinic.database.superuser().execute(
            "insert into clinical.configuration values ('worker.timeout_seconds', '1')"
        )


def test_cp_62_a_change_counts_at_once(clinic: Clinic) -> None:
    """CP-62, CP-31: without a redeploy: the next claim has the new timeout."""
    clinic.operator.connection.execute(
        "update clinical.system_configuration set config_value = '100'"
        " where config_key = 'worker.timeout_seconds'"
    )
    job = clinic.start()
    clinic.pass_time("99 seconds")
    assert clinic.rows("select * from trunkline.reclaim()") == []
    clinic.pass_time("2 seconds")
    assert [row.job_id for row in clinic.rows("select * from trunkline.reclaim()")] == [job]


def test_cp_62_the_jitter_is_configuration(clinic: Clinic) -> None:
    """CP-62, CP-32: at most the seconds that are configured."""
    clinic.configure("worker.reclaim_jitter_max_seconds", "1")
    for _ in range(10):
        clinic.start()
    clinic.pass_time("301 seconds")
    clinic.rows("select * from trunkline.reclaim()")
    drawn = clinic.rows(
        "select (error_details ->> 'reclaim_jitter_seconds')::numeric as s from clinical.job_queue"
    )
    assert {row.s for row in drawn} <= {0, 1}


def test_cp_63_the_delay_of_a_worker_without_capacity(clinic: Clinic) -> None:
    """CP-63: the key is read: by the engine's workers as their setting, by others by its name."""
    engine = (
        "select extract(epoch from value::interval)::integer from trunkline.settings"
        " where name = 'backpressure_delay'"
    )
    assert clinic.operator.value(engine) == 30
    clinic.configure("queue.backpressure_delay_seconds", "45")
    assert clinic.operator.value(engine) == 45
    key = "queue.backpressure_delay_seconds"
    delay = int(clinic.worker.value("select clinical.configured(%s)", key))
    job = clinic.start()
    assert clinic.reschedule(job, delay, jitter=True)
    details = clinic.row(job).error_details
    assert details["reschedule_reason"] == "api_rate_limit_backpressure"
    assert 45 <= details["total_delay_seconds"] <= 67


@pytest.mark.parametrize("key", SOURCE)
@pytest.mark.parametrize("bad", ["abc", "", "0", "-1", "1.5", "99999999999", "30 s", " 30", None])
def test_cp_38_a_bad_value_is_refused_when_written(
    clinic: Clinic, key: str, bad: str | None
) -> None:
    """CP-38, CP-64: not a number, not above zero, not whole; a worker never meets it."""
    with pytest.raises(psycopg.Error, check=lambda e: e.sqlstate == "CP009"):
        clinic.operator.connection.execute(
            "update clinical.system_configuration set config_value = %s where config_key = %s",
            (bad, key),
        )
    assert clinic.operator.value("select clinical.configured(%s)", key) == SOURCE[key]


@pytest.mark.parametrize(
    ("key", "value"),
    [("worker.timeout_seconds", "89"), ("worker.heartbeat_interval_seconds", "101")],
)
def test_cp_64_three_heartbeats_fit_into_the_timeout(clinic: Clinic, key: str, value: str) -> None:
    """CP-64: otherwise living workers would lose their jobs; exactly three are enough."""
    with pytest.raises(psycopg.Error, check=lambda e: e.sqlstate == "CP009"):
        clinic.configure(key, value)
    assert clinic.configure("worker.heartbeat_interval_seconds", "100") == "100"
    clinic.configure("worker.heartbeat_interval_seconds", "30")
    assert clinic.configure("worker.timeout_seconds", "90") == "90"


def test_cp_38_defaults_where_a_row_is_absent(clinic: Clinic) -> None:
    """CP-38, CP-104: 300, 30, 60 and 30 seconds."""
    for key in SOURCE:
        clinic.configure(key, "301" if "timeout" in key else "20")
    clinic.operator.connection.execute("delete from clinical.system_configuration")
    assert clinic.rows("select * from clinical.system_configuration") == []
    found = {key: clinic.operator.value("select clinical.configured(%s)", key) for key in SOURCE}
    assert found == SOURCE
    lease = "select extract(epoch from lease)::integer from trunkline.tasks where task = %s"
    assert clinic.operator.value(lease, "ai_queue_pass1") == 300


def test_an_unknown_key_is_refused(clinic: Clinic) -> None:
    """CP-62: a slip of the pen is not kept as a key that nobody reads."""
    for call in (
        "select clinical.set_configuration('worker.timeout', '5')",
        "insert into clinical.system_configuration (config_key, config_value) values ('x', '1')",
    ):
        with pytest.raises(psycopg.Error, match="unknown configuration key"):
            clinic.operator.connection.execute(call.encode())
    assert clinic.operator.value("select clinical.configured('worker.timeout')") is None


def test_cp_65_maintenance_stops_claims(
    clinic: Clinic, install: Callable[..., tuple[str, ...]]
) -> None:
    """CP-65: with a second switch for claims alone, which a cut-over turns on before the end."""
    job = clinic.enqueue()
    clinic.configure("maintenance.mode", "true")
    assert clinic.claim() is None
    clinic.configure("worker.claims_enabled", "true")
    assert clinic.operator.value("select clinical.configured('maintenance.mode')") == "true"
    assert clinic.claim().job_id == job
    clinic.configure("worker.claims_enabled", "false")
    other = clinic.enqueue()
    install(again=True)
    assert clinic.claim() is None
    clinic.configure("maintenance.mode", "false")
    assert clinic.claim().job_id == other
