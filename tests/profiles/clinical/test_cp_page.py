"""The page about the profile: its SQL runs, its commands exist, its tables are true."""

import re
from pathlib import Path

import pytest

from tests.profiles.clinical.conftest import TYPES, Clinic
from tests.profiles.test_cli import trunkline
from tests.support.databases import Database

PAGE = Path(__file__).parents[3] / "docs" / "profiles" / "clinical.md"
TEXT = PAGE.read_text(encoding="utf-8")
# Run elsewhere: the demonstration has tests of its own.
ELSEWHERE = ("trunkline profile demo",)


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
    assert len(codes) == 19
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


@pytest.mark.parametrize(
    ("requirement", "words"),
    [
        ("CP-86", "Four to five weeks;schema (days 1\u20132);hosts of workers;client functions"),
        ("CP-91", "Medium to high;schema mismatch;security;races;loss of data;1000 and more users"),
        ("CP-92", "Exact DDL;RPCs with grants;limits with backpressure;roll-back;objectives"),
        ("CP-93", "limits validated under 1000;timeout recovery;correlation ids;team trained"),
    ],
)
def test_the_documents_of_the_source_are_on_the_page(requirement: str, words: str) -> None:
    """CP-86, CP-91, CP-92, CP-93: plan, risks, what is delivered and when it is ready."""
    text = " ".join(TEXT.split())
    assert [word for word in words.split(";") if word not in text] == [], requirement
