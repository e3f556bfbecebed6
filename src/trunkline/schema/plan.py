"""The steps of an installation as SQL text: the runner runs them, `script` prints them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources.abc import Traversable

from trunkline import sql
from trunkline.schema import authenticators, release, tenants

__all__ = ["LOCK_TIMEOUT", "Options", "Step"]

# Seconds. Long enough for a parallel installation to end. Short enough not to delay other sessions,
# which queue behind an upgrade while it waits for an old reader.
LOCK_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class Step:
    """A piece of SQL, and its name for error messages."""

    name: str
    text: str


# Setting a schema's comment locks the schema until the transaction ends, but only against other
# comments. Only the owner can do it; an advisory lock would not work, because any login could hold
# it and stop every installation. Two first installations are serialised by the creation of the
# schema, whose name is unique.
_LOCK = Step(
    "lock",
    """\
set local role trunkline_owner;
do $lock$
begin
  if to_regnamespace('trunkline_internal') is not null then
    comment on schema trunkline_internal is
      'Tables and helpers of Trunkline. Use the functions and views of schema trunkline.';
  end if;
end
$lock$;
""",
)

# Not limited to our two schemas: default privileges of a schema can only add to the global ones.
_OWNER = Step(
    "owner",
    """\
alter default privileges for role trunkline_owner revoke execute on functions from public;
""",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of an installation."""

    lock_timeout: float = LOCK_TIMEOUT
    tenant_roles: tuple[str, ...] = ()
    authenticators: tuple[str, ...] = ()
    supabase: bool = False
    # The folder of another engine than the shipped one; for tests.
    root: Traversable | None = None


def opening(options: Options) -> Iterator[Step]:
    """Return the steps for roles, schemas and the lock. After them the session is the owner."""
    yield session(options.lock_timeout)
    yield Step("security/roles.sql", sql.roles_sql(options.root))
    if options.supabase:
        yield Step("security/supabase_roles.sql", sql.supabase_roles_sql(options.root))
    for login in options.authenticators:
        yield Step(f"memberships of {login}", authenticators.memberships(login))
    yield lock()
    yield _OWNER


def lock() -> Step:
    """The lock that keeps other installers out; the session acts as the owner from here on."""
    return _LOCK


def session(lock_timeout: float) -> Step:
    """Return the step that sets the transaction's settings."""
    return Step(
        "session",
        f"""\
set local lock_timeout = '{max(1, round(lock_timeout * 1000))}ms';
set local client_min_messages = warning;
set local search_path = pg_catalog, pg_temp;
set local check_function_bodies = off;
""",
    )


def migrating(pending: Iterable[sql.Migration]) -> Iterator[Step]:
    """Return the steps of each migration with the row that records it.

    The row comes first, so that its key would stop a second installer even without the lock. The
    first migration creates the table, so its row comes last.
    """
    for migration in pending:
        record = Step(
            f"record of migration {migration.label}",
            "insert into trunkline_internal.schema_migrations (version, name, sha256, breaking)\n"
            f"values ({migration.number}, '{migration.name}', '{migration.sha256}', "
            f"{str(migration.breaking).lower()});\n",
        )
        changes = [Step(path, text) for path, text in migration.files]
        yield from (*changes, record) if migration.number == 1 else (record, *changes)


def closing(options: Options) -> Iterator[Step]:
    """Return the steps for functions, views and grants, the same for every version."""
    for repeatable in sql.repeatables(options.root):
        yield Step(repeatable.path, repeatable.text)
    yield Step("security/grants.sql", sql.grants_sql(options.root))
    finish = sql.finish_sql(options.root)
    if finish is not None:
        yield Step("duties/finish.sql", finish)
    if options.supabase:
        yield Step("security/supabase_grants.sql", sql.supabase_grants_sql(options.root))
    platform = ("authenticated",) if options.supabase else ()
    for role in (*platform, *options.tenant_roles):
        yield Step(f"tenant grants of {role}", tenants.grants(role))
    for login in options.authenticators:
        yield Step(f"grants of authenticator {login}", authenticators.grants(login))
    yield Step("record of the release", release.record_sql())
