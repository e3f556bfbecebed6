"""Which schema serves which client, and what a refusal says."""

import logging
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from trunkline.errors import (
    SchemaForbidden,
    SchemaMissing,
    SchemaNewerThanClient,
    SchemaOlderThanClient,
    SchemaPredatesBaseline,
)
from trunkline.schema import contract as module
from trunkline.schema import plan
from trunkline.schema.contract import (
    BASELINE_CONTRACT,
    SchemaVersion,
    check_contract,
    judge,
    newer_hint,
    require_baseline,
    require_served,
)
from trunkline.schema.plan import Options
from trunkline.schema.release import ordinal
from trunkline.schema.script import script
from trunkline.sql import Migration, migrations
from trunkline.version import __version__

_BASE = BASELINE_CONTRACT


@pytest.mark.parametrize(
    ("contract", "oldest", "client", "refusal", "message"),
    [
        (_BASE, _BASE, _BASE, None, ""),
        (_BASE + 2, _BASE, _BASE, None, ""),
        (_BASE + 2, _BASE + 1, _BASE + 1, None, ""),
        (
            *(_BASE + 2, _BASE + 1, _BASE, SchemaNewerThanClient),
            f"The schema supports clients from contract {_BASE + 1} on; this client has {_BASE}",
        ),
        (
            *(_BASE, _BASE, _BASE + 1, SchemaOlderThanClient),
            f"The schema has contract {_BASE}; this client needs {_BASE + 1}",
        ),
        (
            *(_BASE - 1, 1, _BASE, SchemaPredatesBaseline),
            (
                f"The schema has contract {_BASE - 1}, from before the baseline (contract {_BASE}),"
                " and cannot be upgraded"
            ),
        ),
        # A client from before it knows nothing of the baseline.
        (
            *(_BASE - 2, 1, _BASE - 1, SchemaOlderThanClient),
            f"The schema has contract {_BASE - 2}; this client needs {_BASE - 1}",
        ),
    ],
)
def test_a_schema_serves_clients_of_its_contracts(
    contract: int, oldest: int, client: int, refusal: type[Exception] | None, message: str
) -> None:
    schema = SchemaVersion(1, contract, oldest)
    if refusal is None:
        require_served(schema, contract=client)
        assert judge(schema, contract=client) is schema
        return
    for check in (require_served, judge):
        with pytest.raises(refusal) as refused:
            check(schema, contract=client)
        assert type(refused.value) is refusal
        assert str(refused.value) == message


@pytest.mark.parametrize(("ahead", "said"), [(0, False), (1, True)])
def test_a_newer_schema_is_only_warned_about(
    caplog: pytest.LogCaptureFixture, ahead: int, said: bool
) -> None:
    with caplog.at_level(logging.WARNING):
        judge(SchemaVersion(1, _BASE + ahead, _BASE), contract=_BASE)
    expected = (
        f"The schema (contract {_BASE + 1}) is newer than this client (contract {_BASE}) and still"
        " supports it; upgrade the trunkline package"
    )
    assert caplog.messages == ([expected] if said else [])


def test_the_baseline_itself_is_served() -> None:
    require_baseline(_BASE)
    with pytest.raises(SchemaPredatesBaseline):
        require_baseline(_BASE - 1)


@pytest.mark.parametrize("release", [None, "", __version__])
def test_without_a_later_release_the_hint_names_none(release: str | None) -> None:
    assert newer_hint(release) == SchemaNewerThanClient.hint


def test_the_hint_names_the_release_to_upgrade_to() -> None:
    assert newer_hint("99.1") == (
        f'Upgrade the package, which is {__version__}: pip install "trunkline>=99.1".'
        " Do not change the schema: it cannot be downgraded."
    )


class _Connection:
    """Answers the question for the version with a row or an error."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)

    def transaction(self) -> Any:
        return _Nothing()

    def cursor(self, **_: Any) -> Any:
        return self

    def execute(self, _: str) -> Any:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(fetchone=lambda: answer)


class _Nothing:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def _diagnosed(kind: type[psycopg.Error], function: str, text: str | None) -> psycopg.Error:
    class Told(kind):  # type: ignore[valid-type, misc]
        diag = SimpleNamespace(source_function=function, message_primary=text)

    error: psycopg.Error = Told("the whole text")
    return error


_ERRORS = psycopg.errors


@pytest.mark.parametrize(
    ("error", "expected", "message"),
    [
        (
            *(_diagnosed(_ERRORS.InvalidSchemaName, "", ""), SchemaMissing),
            "This database has no Trunkline schema",
        ),
        (
            *(_diagnosed(_ERRORS.UndefinedFunction, "", ""), SchemaMissing),
            "This database has no Trunkline schema",
        ),
        (
            *(_diagnosed(_ERRORS.InsufficientPrivilege, "check_enable_rls", ""), SchemaForbidden),
            "row_security is off in this session, so no table of the schema can be read",
        ),
        (
            *(_diagnosed(_ERRORS.InsufficientPrivilege, "x", "permission denied"), SchemaForbidden),
            "The role of this connection may not use the schema: permission denied",
        ),
        (
            *(_diagnosed(_ERRORS.InsufficientPrivilege, "x", None), SchemaForbidden),
            "The role of this connection may not use the schema: the whole text",
        ),
        (
            *(_diagnosed(_ERRORS.SyntaxError, "x", "bad"), _ERRORS.SyntaxError),
            "the whole text",
        ),
        (None, SchemaMissing, "This database has no Trunkline schema"),
    ],
)
def test_each_error_has_its_refusal(
    error: Exception | None, expected: type[Exception], message: str
) -> None:
    connection: Any = _Connection(error)
    with pytest.raises(expected) as refused:
        check_contract(connection)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (("99.1",), newer_hint("99.1")),
        (None, SchemaNewerThanClient.hint),
        (psycopg.OperationalError("gone"), SchemaNewerThanClient.hint),
    ],
)
def test_a_schema_that_is_too_new_names_its_release(answer: Any, hint: str) -> None:
    connection: Any = _Connection((1, module.CONTRACT + 1, module.CONTRACT + 1), answer)
    with pytest.raises(SchemaNewerThanClient) as refused:
        check_contract(connection)
    assert refused.value.hint == hint


def test_a_schema_that_fits_is_returned() -> None:
    connection: Any = _Connection((3, module.CONTRACT, module.CONTRACT))
    assert check_contract(connection) == SchemaVersion(3, module.CONTRACT, module.CONTRACT)


def test_releases_are_numbers_in_order() -> None:
    in_order = ["0.9", "1.0.dev3", "1.0a1", "1.0-b1", "1.0rc2", "1", "1.0.1", "1.2", "10.0"]
    assert [ordinal(release) for release in in_order] == sorted(map(ordinal, in_order))
    assert ordinal("1.2.3rc4") == [1, 2, 3, -1, 4]
    assert ordinal("2") == [2, 0, 0, 0, 0]
    assert ordinal("nonsense") == [0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("seconds", "written"), [(10.0, "10000ms"), (0.0, "1ms"), (0.0004, "1ms"), (1.5, "1500ms")]
)
def test_a_lock_timeout_is_at_least_a_millisecond(seconds: float, written: str) -> None:
    assert f"set local lock_timeout = '{written}';" in plan.session(seconds).text


def _migration(number: int, *, breaking: bool) -> Migration:
    files = ((f"{number}/a.sql", "a"), (f"{number}/b.sql", "b"))
    return Migration(
        number=number, name="n", why="w", breaking=breaking, files=files, sha256=f"{number}" * 4
    )


def test_a_migration_is_recorded_before_its_changes_but_for_the_first() -> None:
    steps = list(plan.migrating([_migration(1, breaking=False), _migration(2, breaking=True)]))
    names = [step.name for step in steps]
    first, second = (f"record of migration {_migration(n, breaking=True).label}" for n in (1, 2))
    assert names == ["1/a.sql", "1/b.sql", first, second, "2/a.sql", "2/b.sql"]
    assert "values (1, 'n', '1111', false);" in steps[2].text
    assert "values (2, 'n', '2222', true);" in steps[3].text


def test_the_steps_depend_on_the_platform_and_the_roles_of_tenants() -> None:
    plain = [step.name for step in (*plan.opening(Options()), *plan.closing(Options()))]
    options = Options(supabase=True, tenant_roles=("one", "two"))
    mapped = [step.name for step in (*plan.opening(options), *plan.closing(options))]
    added = [name for name in mapped if name not in plain]
    assert added == [
        "security/supabase_roles.sql",
        "security/supabase_grants.sql",
        *(f"tenant grants of {role}" for role in ("authenticated", "one", "two")),
    ]
    assert plain[:4] == ["session", "security/roles.sql", "lock", "owner"]
    assert plain[-3:] == ["security/grants.sql", "duties/finish.sql", "record of the release"]
    assert [name for name in mapped if name in plain] == plain


def test_a_script_starts_from_a_version_that_exists() -> None:
    newest = len(migrations())
    text = script(from_version=newest)
    assert text.startswith(f"-- Trunkline schema from version {newest} to {newest}, contract ")
    assert text.endswith("\ncommit;\n")
    assert "record of migration" not in text
    assert f"c_version constant integer := {newest};" in text
    assert text.index("-- a newer schema stays") < text.index("-- the version this script")
    with pytest.raises(SchemaNewerThanClient) as refused:
        script(from_version=newest + 1)
    assert str(refused.value) == (
        f"There is no version {newest + 1} yet; this package ends at {newest}"
    )
