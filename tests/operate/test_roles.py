"""Every verb of the operator as each role and as a tenant: allowed or refused as documented."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.operate.conftest import Scene
from tests.operate.tenant_objects import TRACES, Objects, arrange, state
from trunkline.artifacts import LocalStore
from trunkline.artifacts.address import VARIABLE
from trunkline.artifacts.results import reference_to
from trunkline.errors import (
    InvalidArgument,
    NeedsAllTenants,
    SchemaForbidden,
    TenantDenied,
    TrunklineError,
    UnknownDuty,
    UnknownJob,
    UnknownSchedule,
    UnknownServiceKey,
    WrongState,
)
from trunkline.model import StepResult
from trunkline.operate import JobFilter, SyncOperator

ROLES: Final = ("operator", "producer", "worker", "reader")

# The verb, the roles that may use it, and what an operator of tenant a gets of tenant b's objects:
# only its `own` rows, something `common` to all tenants, an error as if they did not exist
# (`hidden`), or a refusal (`denied`).
TABLE: Final = """
    health                     operator .        worker reader  common
    now                        operator producer worker reader  common
    diagnose                   operator producer worker reader  common
    jobs.find                  operator producer .      reader  own
    jobs.find_all              operator producer .      reader  own
    jobs.count                 operator producer .      reader  own
    jobs.get                   operator producer .      reader  own
    jobs.resolve               operator producer .      reader  own
    jobs.explain               operator producer .      reader  own
    jobs.usage                 operator .        .      reader  own
    jobs.steps                 operator producer .      reader  own
    jobs.preview               operator producer .      reader  own
    jobs.reset_step            operator .        .      .       own
    jobs.cancel                operator producer .      .       own
    jobs.retry                 operator .        .      .       own
    jobs.reprioritise          operator producer .      .       own
    jobs.discard               operator .        .      .       own
    jobs.cancel_matching       operator .        .      .       own
    jobs.retry_matching        operator .        .      .       own
    jobs.reprioritise_matching operator .        .      .       own
    jobs.discard_matching      operator .        .      .       own
    workflows.list             operator producer .      reader  own
    workflows.get              operator producer .      reader  own
    workflows.resolve          operator producer .      reader  own
    workflows.jobs             operator producer .      reader  own
    workflows.failed           operator producer .      reader  own
    workflows.cancel           operator producer .      .       own
    workflows.rerun            operator .        .      .       own
    workflows.retry            operator .        .      .       own
    workflows.delete           operator .        .      .       own
    events.send                operator producer .      .       own
    dead.find                  operator producer .      reader  own
    dead.groups                operator .        .      reader  own
    dead.group                 operator .        .      reader  own
    dead.acknowledge           operator .        .      .       own
    dead.acknowledge_matching  operator .        .      .       own
    dead.retry_edited          operator .        .      .       own
    dead.replay                operator .        .      .       own
    queues.list                operator .        .      reader  own
    queues.pause               operator .        .      .       denied
    queues.resume              operator .        .      .       denied
    queues.limit               operator .        .      .       denied
    queues.age                 operator .        .      .       denied
    limits.list                operator .        .      reader  own
    limits.get                 operator .        .      reader  own
    limits.buckets             operator .        .      reader  own
    limits.set                 operator .        .      .       denied
    limits.pause               operator .        .      .       hidden
    limits.resume              operator .        .      .       hidden
    quotas.list                operator .        .      reader  own
    quotas.usage               operator .        .      reader  own
    quotas.set                 operator .        .      .       denied
    breakers.list              operator .        .      reader  own
    breakers.set               operator .        .      .       denied
    breakers.trip              operator .        .      .       denied
    breakers.reset             operator .        .      .       denied
    schedules.list             operator .        .      reader  own
    schedules.get              operator .        .      reader  own
    schedules.set              operator .        .      .       denied
    schedules.pause            operator .        .      .       own
    schedules.resume           operator .        .      .       own
    schedules.remove           operator .        .      .       own
    schedules.next_due         operator producer .      reader  common
    workers.list               operator .        .      reader  own
    workers.wanted             operator .        .      reader  own
    workers.drain              operator .        .      .       hidden
    duties.list                operator .        .      reader  common
    duties.run                 operator .        worker .       common
    duties.run_due             operator .        worker .       common
    duties.enable              operator .        .      .       denied
    duties.disable             operator .        .      .       denied
    duties.add                 .        .        .      .       denied
    duties.remove              .        .        .      .       denied
    settings.list              operator producer worker reader  common
    settings.get               operator producer worker reader  common
    settings.set               operator .        .      .       denied
    settings.reset             operator .        .      .       denied
    keys.create                operator .        .      .       denied
    keys.list                  operator .        .      .       own
    keys.revoke                operator .        .      .       denied
    tasks.list                 operator producer worker reader  own
    tasks.get                  operator producer worker reader  own
    activity.recent            operator .        .      reader  own
    activity.follow            operator .        .      reader  own
    log.list                   operator .        .      reader  own
    artifacts.list             operator producer .      reader  own
    artifacts.get              operator producer .      reader  own
    artifacts.open             operator producer .      reader  own
    artifacts.read             operator producer .      reader  own
    artifacts.save             operator producer .      reader  own
    artifacts.link             operator producer .      reader  own
    artifacts.upload_link      .        .        worker .       denied
    artifacts.zip              operator producer .      reader  own
    artifacts.resolve          operator producer .      reader  own
    artifacts.resolve_id       operator producer .      reader  own
    artifacts.resolve_page     operator producer worker reader  common
    artifacts.delete           operator producer .      .       own
    artifacts.storage          operator producer .      reader  own
    artifacts.removals         operator .        .      reader  own
    artifacts.installation     operator .        worker .       common
    artifacts.set_quota        operator .        .      .       denied
    artifacts.set_retention    operator .        .      .       denied
"""
ROWS: Final = {row.split()[0]: row.split()[1:] for row in TABLE.strip().splitlines()}
EVERY: Final = JobFilter(task="work")


def first(rows: Iterator[Any]) -> list[Any]:
    return [next(rows, None)]


def arguments(theirs: Objects, copy: Path) -> dict[str, Callable[[Any], Any]]:
    """Return how each verb that needs arguments is called, with objects of tenant b."""
    waiting, dead, live, failed = (
        theirs.waiting,
        theirs.dead,
        theirs.live_workflow,
        theirs.failed_workflow,
    )
    return {
        "jobs.find_all": lambda verb: list(verb(EVERY)),
        "jobs.get": lambda verb: verb(waiting),
        "jobs.resolve": lambda verb: verb(waiting[:18]),
        "jobs.explain": lambda verb: verb(waiting),
        "jobs.usage": lambda verb: verb(waiting),
        "jobs.steps": lambda verb: verb(theirs.suspended),
        "jobs.reset_step": lambda verb: verb(theirs.suspended, "read"),
        "jobs.preview": lambda verb: verb("cancel", EVERY),
        "jobs.cancel": lambda verb: verb(waiting),
        "jobs.retry": lambda verb: verb(dead),
        "jobs.reprioritise": lambda verb: verb(waiting, 3),
        "jobs.discard": lambda verb: verb(dead),
        "jobs.cancel_matching": lambda verb: list(verb(EVERY)),
        "jobs.retry_matching": lambda verb: list(verb(EVERY)),
        "jobs.reprioritise_matching": lambda verb: list(verb(EVERY, 3)),
        "jobs.discard_matching": lambda verb: list(verb(EVERY)),
        "workflows.get": lambda verb: verb(live),
        "workflows.resolve": lambda verb: verb(live[:18]),
        "workflows.jobs": lambda verb: verb(live),
        "workflows.failed": lambda verb: verb(failed),
        "workflows.cancel": lambda verb: verb(live),
        "workflows.rerun": lambda verb: verb(failed),
        "workflows.retry": lambda verb: verb(failed),
        # The operator has cancelled it before.
        "workflows.delete": lambda verb: verb(live),
        "events.send": lambda verb: verb("go", job=theirs.suspended),
        "dead.group": lambda verb: verb(theirs.group),
        "dead.acknowledge": lambda verb: verb(dead),
        "dead.acknowledge_matching": lambda verb: list(verb(EVERY)),
        "dead.retry_edited": lambda verb: verb(dead, {"n": 1}),
        "dead.replay": lambda verb: first(verb(EVERY, rate=1000)),
        "queues.pause": lambda verb: verb("of b"),
        "queues.resume": lambda verb: verb("of b"),
        "queues.limit": lambda verb: verb("of b", 5),
        "queues.age": lambda verb: verb("of b"),
        "limits.get": lambda verb: verb("api"),
        "limits.buckets": lambda verb: verb("api"),
        "limits.set": lambda verb: verb("api", {"concurrency": 2}),
        "limits.pause": lambda verb: verb("api"),
        "limits.resume": lambda verb: verb("api"),
        "quotas.set": lambda verb: verb("api", {"quota": 5, "quota_period": "month"}),
        "breakers.set": lambda verb: verb("api", {"breaker_failures": 5}),
        "breakers.trip": lambda verb: verb("api", length="1m"),
        "breakers.reset": lambda verb: verb("api"),
        "schedules.get": lambda verb: verb("of b"),
        "schedules.set": lambda verb: verb("of b", "@hourly", "work"),
        "schedules.pause": lambda verb: verb("of b"),
        "schedules.resume": lambda verb: verb("of b"),
        "schedules.remove": lambda verb: verb("of b"),
        "schedules.next_due": lambda verb: verb("@daily"),
        "workers.drain": lambda verb: verb("w1"),
        "duties.run": lambda verb: verb("promote"),
        "duties.enable": lambda verb: verb("promote"),
        "duties.disable": lambda verb: verb("promote"),
        "duties.add": lambda verb: verb("mine", "public.mine", "1m"),
        "duties.remove": lambda verb: verb("mine"),
        "settings.get": lambda verb: verb("lease"),
        "settings.set": lambda verb: verb("lease", "10 minutes"),
        "settings.reset": lambda verb: verb("lease"),
        "keys.create": lambda verb: verb("shop", "reader"),
        "keys.revoke": lambda verb: verb("abcdefghij12"),
        "tasks.get": lambda verb: verb("work"),
        "activity.follow": lambda verb: first(verb(5)),
        "artifacts.get": lambda verb: verb(theirs.file),
        "artifacts.open": lambda verb: list(verb(theirs.file)),
        "artifacts.read": lambda verb: verb(theirs.file),
        "artifacts.save": lambda verb: verb(theirs.file, copy).read_bytes(),
        "artifacts.link": lambda verb: verb(theirs.file),
        "artifacts.upload_link": lambda verb: verb(
            theirs.begun, worker="w", job=theirs.uploading, attempt=1
        ),
        "artifacts.zip": lambda verb: b"".join(verb(job=theirs.uploader)),
        "artifacts.resolve": lambda verb: verb(reference_to(theirs.result), theirs.uploader),
        "artifacts.resolve_page": lambda verb: verb([StepResult(0, "small")]),
        "artifacts.resolve_id": lambda verb: verb(str(theirs.file)[:30]),
        "artifacts.delete": lambda verb: verb(theirs.file),
        "artifacts.set_quota": lambda verb: verb("b", 1000),
        "artifacts.set_retention": lambda verb: verb("txt", "1d"),
        "diagnose": lambda verb: list(verb()),
    }


@pytest.fixture
def calls_of(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[SyncOperator, str], Any]:
    """Return how to call a verb by its name; everything that it meets belongs to tenant b."""
    store = LocalStore(tmp_path / "files")
    monkeypatch.setenv(VARIABLE, store.address)
    forms = arguments(arrange(scene, store), tmp_path / "copy")
    # Tenant a has something of its own: otherwise its activity would never have a line.
    scene.calls.enqueue(tenant="a")

    def call(operator: SyncOperator, name: str) -> Any:
        verb: Any = operator
        for part in name.split("."):
            verb = getattr(verb, part)
        return forms.get(name, lambda verb: verb())(verb)

    return call


def verbs_of(owner: object) -> set[str]:
    return {
        name
        for name, _ in inspect.getmembers(type(owner), inspect.isfunction)
        if not name.startswith("_")
    }


def test_the_table_has_every_verb(scene: Scene) -> None:
    operator = scene.operator
    rooms = {name: room for name, room in vars(operator).items() if not name.startswith("_")}
    verbs = verbs_of(operator) - {"close", "acting"}
    verbs |= {f"{name}.{verb}" for name, room in rooms.items() for verb in verbs_of(room)}
    assert {*ROWS} == verbs


@pytest.mark.parametrize("role", ROLES)
def test_each_role_may_use_the_verbs_that_the_table_allows(
    scene: Scene, calls_of: Callable[[SyncOperator, str], Any], role: str
) -> None:
    operator = scene.as_role(role)
    before = state(scene)
    # Refused verbs first: what is allowed changes the jobs.
    for name in sorted(ROWS, key=lambda name: role in ROWS[name]):
        if role not in ROWS[name]:
            with pytest.raises(SchemaForbidden):
                pytest.fail(f"{name} as {role}: {calls_of(operator, name)}")
            assert state(scene) == before, name
            continue
        try:
            calls_of(operator, name)
        except SchemaForbidden as error:
            pytest.fail(f"{name} as {role}: {error}")
        except (
            *(UnknownDuty, UnknownJob, UnknownSchedule, UnknownServiceKey),
            *(WrongState, InvalidArgument),
        ):
            # A verb before it has changed or removed the object.
            continue


def test_a_tenant_reaches_nothing_of_another(
    scene: Scene, calls_of: Callable[[SyncOperator, str], Any]
) -> None:
    tenant = scene.as_role("operator", tenant="a")
    before = state(scene)
    for name, row in ROWS.items():
        try:
            answer = calls_of(tenant, name)
        except (NeedsAllTenants, TenantDenied, SchemaForbidden):
            result = {"denied"}
        except TrunklineError:
            result = {"own", "hidden"}
        else:
            result = {"own", "common"}
            assert not [trace for trace in TRACES if trace in repr(answer)], name
        assert row[-1] in result, name
        assert state(scene) == before, name
