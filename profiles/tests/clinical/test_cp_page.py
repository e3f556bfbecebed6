"""The page about the profile: its SQL runs, its commands exist, its tables are true."""

import re
from pathlib import Path

import pytest

from profiles.tests.clinical.conftest import TYPES, Clinic
from profiles.tests.executor.test_cli import trunkline
from tests.support.databases import Database

PAGE = Path(__file__).parents[2] / "docs" / "clinical.md"
TEXT = PAGE.read_text(encoding="utf-8")
# Run elsewhere: test_distribution installs the package, and the demonstration has its own tests.
ELSEWHERE = ("pip install", "trunkline profile demo")


def blocks() -> list[str]:
    return re.findall(r"^```sql\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def test_the_sql_of_the_page_runs(clinic: Clinic) -> None:
    """CP-86: the smoke sequence among it, which ends with a completed job."""
    assert len(blocks()) >= 5
    owner = clinic.database.connect("trunkline_owner")
    for block in blocks():
        owner.execute(block.encode())
    for inline in re.findall(r"`(select [^`…]+)`", TEXT):
        clinic.operator.connection.execute(inline.encode())
    (smoke,) = clinic.rows("select * from clinical.job_queue where job_name = 'smoke'")
    assert (smoke.status, smoke.deferrals, smoke.retry_count) == ("completed", 1, 0)


def test_cp_86_the_smoke_sequence(clinic: Clinic) -> None:
    """CP-86: enqueue, claim, heartbeat, reschedule, claim again, complete; then nothing is left."""
    job = clinic.start(worker="smoke")
    assert clinic.beat(job, "smoke", 1)
    assert clinic.reschedule(job, 0, "smoke", jitter=False, attempt=1)
    assert clinic.claim("smoke").attempt == 2
    assert clinic.complete(job, "smoke", {"ok": True}, attempt=2)
    assert clinic.claim("smoke") is None


def test_the_commands_of_the_page_run(database: Database) -> None:
    """CP-85, CP-90: with the older tables beside it."""
    owner = database.connect()
    owner.execute("create schema if not exists public")
    owner.execute(
        "create table public.shell_files (id uuid primary key, patient_id uuid,"
        " processing_error text)"
    )
    owner.execute(
        "create table public.job_queue (id uuid primary key, job_type text, status text,"
        " job_payload jsonb, created_at timestamptz)"
    )
    found = re.findall(r"^```console\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    ran = 0
    for line in "".join(found).splitlines():
        command = re.sub(r"\s+#.*", "", line.removeprefix("$ "))
        if command.startswith(ELSEWHERE):
            continue
        words = command.split()
        assert words[:2] == ["trunkline", "profile"], command
        trunkline(database, *words[2:], code=1 if words[2] == "check" else 0)
        ran += 1
    assert ran >= 9


@pytest.mark.parametrize("kind", TYPES)
def test_the_page_names_every_type(kind: str) -> None:
    """CP-10, CP-99."""
    assert f"`{kind}`" in TEXT


def test_the_tables_of_the_page_are_true(clinic: Clinic) -> None:
    """CP-53, CP-62, CP-99: limits, endpoints, keys and refusals are those of the database."""
    for row in clinic.rows("select * from clinical.api_rate_limits"):
        tokens = f"{row.tokens_per_minute:,}" if row.tokens_per_minute else "\u2013"
        name = f"{row.provider_name}/{row.api_endpoint}"
        line = f"| `{name}` | {row.requests_per_minute:,} | {tokens} | {row.concurrent_requests} |"
        assert line in TEXT
    for row in clinic.rows("select * from clinical.job_types where api_endpoint is not null"):
        assert f"| `{row.job_type}` | `{row.provider_name}/{row.api_endpoint}` |" in TEXT
    for row in clinic.rows("select * from clinical.configuration_keys"):
        assert f"`{row.config_key}`" in TEXT
    for row in clinic.rows("select * from clinical.rollout_steps"):
        assert f"`{row.step}`" in TEXT
    body = clinic.operator.value(
        "select prosrc from pg_proc where oid = 'clinical.refuse'::regproc"
    )
    codes = re.findall(r"\(\s*'([a-z_]+)', '(CP\d{3}|42501)'", body)
    assert len(codes) == 23
    assert all(f"`{name}`" in TEXT and state in TEXT for name, state in codes)


def test_the_table_of_rights_is_true(clinic: Clinic) -> None:
    """CP-76, CP-81: what the page says of a role is what the role may call."""
    heads: list[str] = []
    for line in TEXT.split("## Who may do what")[1].split("\n\n")[1].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not heads:
            heads = cells
        elif cells[0].startswith("`"):
            for name in re.findall(r"`([a-z_0-9]+)`", cells[0]):
                for head, cell in list(zip(heads, cells, strict=True))[1:5]:
                    found = clinic.operator.value(
                        "select coalesce((select bool_and(has_function_privilege(%(r)s, p.oid,"
                        " 'execute')) from pg_proc as p where p.proname = %(n)s and"
                        " p.pronamespace = 'clinical'::regnamespace), has_table_privilege(%(r)s,"
                        " to_regclass('clinical.' || %(n)s), 'select'))".replace(
                            "%(r)s", f"'trunkline_{head}'"
                        ).replace("%(n)s", f"'{name}'")
                    )
                    assert found == (cell != "\u2013"), (name, head)


def missing(*words: str) -> list[str]:
    """What of it is not on the page."""
    text = " ".join(TEXT.split())
    return [word for word in words if word not in text]


def test_cp_86_the_plan_is_on_the_page() -> None:
    """CP-86: weeks and days."""
    plan = ("Four to five weeks", "schema (days 1\u20132)", "hosts of workers", "client functions")
    assert missing(*plan) == []


def test_cp_91_the_risks_are_on_the_page() -> None:
    """CP-91: their level, those that are covered, those that are open."""
    assert missing("Medium to high until it is validated after deployment") == []
    covered = ("schema mismatch", "security", "races", "failing limits", "coordination of workers")
    assert missing(*covered, "loss of data") == []
    assert missing("integration (tests and the roll-back)", "1000 and more users") == []
    assert missing("coverage of monitoring (correlation ids and objectives)") == []


def test_cp_92_what_is_delivered_is_on_the_page_and_there(clinic: Clinic) -> None:
    """CP-92: eight things, each of them something that can be looked at."""
    delivered = TEXT.split("**Delivered.**")[1].split("\n\n")[0]
    assert " ".join(delivered.split()) == (
        "Exact DDL; RPCs with grants; limits with backpressure; a worker with heartbeat and"
        " correlation; the security model; the cut-over; the roll-back; monitoring and objectives."
    )
    plans = clinic.rows("select plan, count(*) as steps from clinical.rollout_steps group by plan")
    assert {row.plan: row.steps for row in plans} == {"checklist": 9, "cutover": 8, "rollback": 7}
    there = clinic.operator.value(
        "select count(*) from unnest(array['claim_next_job_v3', 'update_job_heartbeat',"
        " 'acquire_api_capacity', 'run_step']) as n (name) join pg_proc as p"
        " on p.proname = n.name and p.pronamespace = 'clinical'::regnamespace"
    )
    assert there == 4
    assert clinic.operator.value("select count(*) > 0 from clinical.metrics")


def test_cp_93_when_it_is_ready_is_on_the_page() -> None:
    """CP-93: eight points."""
    ready = " ".join(TEXT.split("**Ready** means:")[1].split("\n\n")[0].split())
    assert ready.removesuffix(".").split("; ") == [
        "schema applied and tested",
        "limits validated under 1000 and more at once",
        "heartbeat and timeout recovery tested",
        "correlation ids seen in the audit",
        "isolation of the service role confirmed",
        "end to end validated",
        "roll-back tested",
        "team trained",
    ]
