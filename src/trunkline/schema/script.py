"""``trunkline schema sql``: prints an installation as plain SQL for psql or a migrations folder.

The script is one transaction and checks the version of the database before it changes anything. A
script from nothing refuses a database that has a schema. A script from version N refuses every
other version, so a second run stops with an error and changes nothing. A script without migrations
(from the newest version) can be run any number of times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources.abc import Traversable

from trunkline import sql
from trunkline.errors import SchemaNewerThanClient
from trunkline.schema import plan, release
from trunkline.schema.contract import CONTRACT
from trunkline.schema.plan import LOCK_TIMEOUT, Options, Step

__all__ = ["script"]

_GUARD = """\
do $guard$
declare
  c_version constant integer := :version;
  v_version integer := 0;
begin
  if to_regclass('trunkline_internal.schema_migrations') is not null then
    select coalesce(max(m.version), 0) into v_version
      from trunkline_internal.schema_migrations as m;
  end if;
  if v_version <> c_version then
    raise exception using
      errcode = 'TL093',
      message = 'script starts from another version than the database has',
      detail = json_build_object('code', 'schema_version_mismatch',
        'database', v_version, 'script', c_version)::text,
      hint = format('Nothing was changed. Print the right script with: '
        'trunkline schema sql --from %s', v_version);
  end if;
end
$guard$;
"""


def script(
    *,
    from_version: int = 0,
    supabase: bool = False,
    tenant_roles: Sequence[str] = (),
    authenticators: Sequence[str] = (),
    lock_timeout: float = LOCK_TIMEOUT,
    root: Traversable | None = None,
) -> str:
    """Return the SQL from version ``from_version`` (0: no schema) to the shipped version."""
    options = Options(
        lock_timeout=lock_timeout,
        tenant_roles=tuple(tenant_roles),
        authenticators=tuple(authenticators),
        supabase=supabase,
        root=root,
    )
    shipped = sql.migrations(root)
    if from_version > len(shipped):
        raise SchemaNewerThanClient(
            f"There is no version {from_version} yet; this package ends at {len(shipped)}"
        )
    head = (
        f"-- Trunkline schema from version {from_version} to {len(shipped)}, contract {CONTRACT}.\n"
        "-- Printed by `trunkline schema sql`. Run it as a role with CREATEROLE and CREATE on the\n"
        "-- database: psql -v ON_ERROR_STOP=1 -f FILE. It refuses a database of another version.\n"
        "begin;\n"
    )
    pending = shipped[from_version:]
    return head + "".join(map(_printed, _steps(options, from_version, pending))) + "\ncommit;\n"


def _steps(options: Options, from_version: int, pending: Sequence[sql.Migration]) -> Iterator[Step]:
    yield from plan.opening(options)
    newest = len(sql.migrations(options.root))
    yield Step("a newer schema stays as it is", release.guard_sql(newest))
    yield Step("the version this script starts from", _GUARD.replace(":version", str(from_version)))
    yield from plan.migrating(pending)
    yield from plan.closing(options)


def _printed(step: Step) -> str:
    return f"\n-- {step.name}\n{step.text.rstrip()}\n"
