"""Who may do what, as a table to read, compared with what the catalogue says."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from tests.integration.catalog.conftest import Ask
from tests.support.databases import Database

ROLES = ("producer", "worker", "operator", "reader")

FUNCTIONS = """
    acknowledge          .        .        operator .
    acknowledge_cancel   .        worker   .        .
    acknowledge_jobs     .        .        operator .
    abandon_artifact     .        worker   .        .
    artifact             producer .        operator reader
    artifact_upload      .        worker   .        .
    artifacts_to_check   .        worker   operator .
    begin_artifact       .        worker   .        .
    delete_artifact      producer .        operator .
    list_artifacts       producer .        operator reader
    report_checked       .        worker   operator .
    report_files         .        worker   operator .
    report_removals      .        worker   operator .
    reserve_storage      .        worker   .        .
    set_artifact_retention .      .        operator .
    set_storage_quota    .        .        operator .
    stage_artifact       .        worker   .        .
    stage_elements       .        worker   .        .
    storage_installation .        worker   operator .
    sweep_artifacts      .        worker   operator .
    take_removals        .        worker   operator .
    take_sweep           .        worker   operator .
    acquire              producer worker   operator .
    add_duty             .        .        .        .
    adopt_schedule       .        .        operator .
    after_restore        .        .        operator .
    age_queue            .        .        operator .
    begin_jobs           .        worker   .        .
    begin_once           .        worker   .        .
    begin_wait           .        worker   .        .
    cancel               producer .        operator .
    create_service_key   .        .        operator .
    revoke_service_key   .        .        operator .
    use_service_key      .        .        operator .
    cancel_jobs          .        .        operator .
    cancel_workflow      producer .        operator .
    child_results        .        worker   .        .
    claim                .        worker   .        .
    clock                producer worker   operator reader
    complete             .        worker   .        .
    count_jobs           producer .        operator reader
    dead_letter_groups   .        .        operator reader
    deferred_jobs        .        .        operator reader
    delete_workflow      .        .        operator .
    dependency_results   .        worker   .        .
    discard              .        .        operator .
    discard_jobs         .        .        operator .
    emit                 .        worker   .        .
    drain_worker         .        .        operator .
    enable_duty          .        .        operator .
    enqueue              producer .        operator .
    enqueue_batch        producer .        operator .
    enqueue_many         producer .        operator .
    explain              producer .        operator reader
    fail                 .        worker   .        .
    find_jobs            producer .        operator reader
    find_workflows       producer .        operator reader
    follow               producer .        operator reader
    hand_over            .        worker   .        .
    health               .        worker   operator reader
    heartbeat            .        worker   .        .
    job                  producer .        operator reader
    job_steps            producer .        operator reader
    job_workflow         .        worker   .        .
    limit_queue          .        .        operator .
    list_jobs            producer .        operator reader
    live_jobs            producer .        operator reader
    live_workflows       producer .        operator reader
    maintain_partitions  .        worker   operator .
    next_due             producer .        operator reader
    observe_limit        producer worker   operator .
    pause_queue          .        .        operator .
    pause_schedule       .        .        operator .
    progress             .        worker   .        .
    promote              .        worker   operator .
    pulse                .        worker   .        .
    queue_sizes          .        .        operator reader
    recent_activity      .        .        operator reader
    reclaim              .        worker   operator .
    record_once          .        worker   .        .
    record_steps         .        worker   .        .
    recorded_steps       .        worker   .        .
    register_task        producer worker   operator .
    register_tasks       producer worker   operator .
    register_worker      .        worker   .        .
    release              .        worker   .        .
    release_forgotten    .        worker   .        .
    remove_duty          .        .        .        .
    remove_schedule      .        .        operator .
    reprioritise         producer .        operator .
    reprioritise_jobs    .        .        operator .
    rerun_workflow       .        .        operator .
    reset_breaker        .        .        operator .
    reset_step           .        .        operator .
    resolve_job          producer .        operator reader
    resume_queue         .        .        operator .
    resume_schedule      .        .        operator .
    retry                .        .        operator .
    retry_edited         .        .        operator .
    retry_fresh          .        .        operator .
    retry_jobs           .        .        operator .
    retry_workflow       .        .        operator .
    run_duties           .        worker   operator .
    run_duty             .        worker   operator .
    run_schedules        .        worker   operator .
    schema_release       producer worker   operator reader
    schema_version       producer worker   operator reader
    search_jobs          producer .        operator reader
    send_event           producer .        operator .
    set_limit            .        .        operator .
    set_schedule         .        .        operator .
    set_setting          .        .        operator .
    settle               producer worker   operator .
    settle_job           .        worker   .        .
    sleep                .        worker   .        .
    snooze               .        worker   .        .
    start_workflow       producer .        operator .
    stop_worker          .        worker   .        .
    suspend              .        worker   .        .
    sweep_buckets          .        worker   operator .
    sweep_idempotency    .        worker   operator .
    tenant_scope         producer worker   operator reader
    trip_breaker         .        .        operator .
    usage_of_job      .        .        operator reader
    workflow_jobs        producer .        operator reader
    workflow_progress    producer .        operator reader
    workflow_results     producer .        operator reader
    wake                 .        worker   .        .
    worker_targets       .        .        operator reader
"""
VIEWS = """
    artifact_kinds       .        .        operator reader
    artifacts            producer .        operator reader
    breakers             .        .        operator reader
    file_removals        .        .        operator reader
    storage              producer .        operator reader
    dead_letters         .        .        operator reader
    duties               .        .        operator reader
    events               .        .        operator reader
    buckets                .        .        operator reader
    jobs                 producer .        operator reader
    limits               .        .        operator reader
    once_steps           producer .        operator reader
    operator_log         .        .        operator reader
    queues               .        .        operator reader
    quotas               .        .        operator reader
    reclaim_history      .        .        operator reader
    schedules            .        .        operator reader
    service_keys         .        .        operator .
    settings             producer worker   operator reader
    usage             .        .        operator reader
    stale_monitor        .        .        operator reader
    stale_validation     .        .        operator reader
    store_sweep          .        .        operator reader
    tasks                producer worker   operator reader
    throughput           .        .        operator reader
    wanted_workers       .        .        operator reader
    workers              .        .        operator reader
    workflow_steps       producer .        operator reader
    workflows            producer .        operator reader
"""

FUNCTION_RIGHTS = """
select p.proname, r.name, has_function_privilege('trunkline_' || r.name, p.oid, 'execute')
from pg_proc as p cross join unnest(%s::text[]) as r (name)
where p.pronamespace = 'trunkline'::regnamespace
"""
VIEW_RIGHTS = """
select c.relname, r.name, has_table_privilege('trunkline_' || r.name, c.oid, 'select')
from pg_class as c cross join unnest(%s::text[]) as r (name)
where c.relnamespace = 'trunkline'::regnamespace and c.relkind <> 'c'
"""
# Composite types are no secret, but everything else of a relation is.
RELATIONS = """
select c.oid::regclass::text from pg_class as c
where c.relnamespace in ('trunkline'::regnamespace, 'trunkline_internal'::regnamespace)
  and c.relkind in ('r', 'p', 'v')
order by 1
"""
SIGNATURES = """
select p.oid::regprocedure::text from pg_proc as p
where p.pronamespace in ('trunkline'::regnamespace, 'trunkline_internal'::regnamespace)
order by 1
"""


def table(text: str) -> dict[str, set[str]]:
    rows = (line.split() for line in text.strip().splitlines())
    return {name: set(roles) - {"."} for name, *roles in rows}


def rights(answers: list[tuple[str, str, bool]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, role, may in answers:
        found.setdefault(name, set()).update({role} if may else set())
    return found


def test_the_functions_are_these_and_for_these_roles(ask: Ask) -> None:
    assert rights([(n, r, m) for n, r, m in ask(FUNCTION_RIGHTS, list(ROLES))]) == table(FUNCTIONS)


def test_the_views_are_these_and_for_these_roles(ask: Ask) -> None:
    assert rights([(n, r, m) for n, r, m in ask(VIEW_RIGHTS, list(ROLES))]) == table(VIEWS)


def test_no_role_may_write_to_a_view(ask: Ask) -> None:
    assert (
        ask(
            "select c.relname, r.name from pg_class as c cross join unnest(%s::text[]) as r (name)"
            " where c.relnamespace = 'trunkline'::regnamespace and c.relkind = 'v'"
            " and has_table_privilege('trunkline_' || r.name, c.oid,"
            " 'insert, update, delete, truncate, references, trigger')",
            list(ROLES),
        )
        == []
    )


def test_a_grant_too_many_is_noticed(installed: Database) -> None:
    with installed.superuser(autocommit=False) as connection:
        connection.execute("grant execute on function trunkline.claim to trunkline_reader")
        found = connection.execute(FUNCTION_RIGHTS, (list(ROLES),)).fetchall()
        assert rights(found) != table(FUNCTIONS)
        connection.rollback()


@pytest.fixture(scope="module")
def anonymous(installed: Database) -> Iterator[str]:
    """A role like any other on the server, and no member of ours."""
    name = f"anonymous_{installed.name[-12:]}"
    with installed.superuser() as connection:
        connection.execute(sql.SQL("create role {} login").format(sql.Identifier(name)))
        yield name
        connection.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


def test_the_anonymous_can_call_nothing(installed: Database, ask: Ask, anonymous: str) -> None:
    stranger = installed.connect(anonymous)
    signatures = [signature for (signature,) in ask(SIGNATURES)]
    for signature in signatures:
        name, _, arguments = signature.removesuffix(")").partition("(")
        types = [part for part in arguments.split(",") if part]
        nulls = ", ".join(f"null::{kind}" for kind in types)
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
            stranger.execute(f"select {name}({nulls})".encode())
    stranger.close()
    assert len(signatures) > 90


def test_the_anonymous_can_neither_read_nor_write_anything(
    installed: Database, ask: Ask, anonymous: str
) -> None:
    stranger = installed.connect(anonymous)
    relations = [relation for (relation,) in ask(RELATIONS)]
    for relation in relations:
        for statement in (
            f"select from {relation}",
            f"insert into {relation} default values",
            f"delete from {relation}",
            f"truncate {relation}",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
                stranger.execute(statement.encode())
    stranger.close()
    assert len(relations) > 30


@pytest.mark.parametrize("role", ROLES)
def test_our_roles_cannot_reach_the_tables(installed: Database, ask: Ask, role: str) -> None:
    member = installed.connect(f"trunkline_{role}")
    internal = [name for (name,) in ask(RELATIONS) if name.startswith("trunkline_internal.")]
    for relation in internal:
        for statement in (f"select from {relation}", f"insert into {relation} default values"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
                member.execute(statement.encode())
    member.close()
    assert len(internal) > 20


def test_a_worker_cannot_read_jobs_it_did_not_claim(installed: Database) -> None:
    worker = installed.connect("trunkline_worker")
    for statement in (
        "select from trunkline.jobs",
        "select from trunkline.events",
        "select from trunkline.dead_letters",
        "select from trunkline.job(p_job => null)",
        "select from trunkline.list_jobs()",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
            worker.execute(statement.encode())
    worker.close()
