"""The release that applied a database's functions; no older package may overwrite them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, LiteralString

from trunkline import sql
from trunkline.errors import SchemaNewerThanClient, SchemaPredatesBaseline
from trunkline.schema.contract import BASELINE_CONTRACT, CONTRACT, newer_hint, require_baseline
from trunkline.version import __version__

if TYPE_CHECKING:
    from trunkline.schema.session import Connection

__all__ = [
    "RELEASE",
    "guard_sql",
    "newer_than_package",
    "ordinal",
    "record_sql",
    "require_not_newer",
]

RELEASE: Final = __version__

_SHAPE: Final = re.compile(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?[.-]?(dev|a|b|rc)?(\d+)?")
# A pre-release comes before its release.
_STAGES: Final = {"dev": -4, "a": -3, "b": -2, "rc": -1, None: 0}


def ordinal(release: str) -> list[int]:
    """Return a release as numbers that compare in order."""
    found = _SHAPE.match(release)
    if found is None:
        return [0, 0, 0, 0, 0]
    major, minor, patch, stage, number = found.groups()
    return [int(major), int(minor or 0), int(patch or 0), _STAGES[stage], int(number or 0)]


def record_sql() -> str:
    """Return the statement that records this release, if the engine has the table for it."""
    numbers = ", ".join(map(str, ordinal(RELEASE)))
    return f"""\
do $release$
begin
  if to_regclass('trunkline_internal.schema_release') is not null then
    insert into trunkline_internal.schema_release (release, ordinal)
    values ('{RELEASE}', array[{numbers}])
    on conflict (singleton) do update
    set release = excluded.release, ordinal = excluded.ordinal, applied_at = excluded.applied_at
    where schema_release.ordinal <> excluded.ordinal;
  end if;
end
$release$;
"""  # noqa: S608 - numbers and the version of this package, nothing from outside


def guard_sql(shipped: int) -> str:
    """Return a statement that refuses a schema newer than this package, or before the baseline."""
    numbers = ", ".join(map(str, ordinal(RELEASE)))
    return f"""\
do $newer$
declare
  v_contract integer;
  v_release text;
  v_version integer := 0;
begin
  if to_regclass('trunkline_internal.schema_migrations') is not null then
    select coalesce(max(m.version), 0) into v_version
    from trunkline_internal.schema_migrations as m;
  end if;
  if to_regprocedure('trunkline.schema_version()') is not null then
    select v.contract into v_contract from trunkline.schema_version() as v;
  end if;
  if to_regclass('trunkline_internal.schema_release') is not null then
    select r.release into v_release
    from trunkline_internal.schema_release as r
    where r.ordinal > array[{numbers}];
  end if;
  if v_contract < {BASELINE_CONTRACT} then
    raise exception using
      errcode = 'TL095',
      message = 'schema is from before the baseline',
      detail = json_build_object('code', 'schema_predates_baseline',
        'database_contract', v_contract, 'baseline_contract', {BASELINE_CONTRACT})::text,
      hint = 'Nothing was changed. {SchemaPredatesBaseline.hint}';
  end if;
  if v_version > {shipped} or v_contract > {CONTRACT} or v_release is not null then
    raise exception using
      errcode = 'TL014',
      message = 'the schema is newer than the package',
      detail = json_build_object('code', 'schema_newer_than_client',
        'database', v_version, 'package', {shipped},
        'database_contract', v_contract, 'package_contract', {CONTRACT},
        'database_release', v_release, 'package_release', '{RELEASE}')::text,
      hint = 'Nothing was changed. ' || coalesce(
        format('Upgrade the package: pip install "trunkline>=%s"', v_release),
        'Upgrade the trunkline package to the version that installed the schema, or newer.'
      );
  end if;
end
$newer$;
"""  # noqa: S608 - numbers and the version of this package, nothing from outside


def require_not_newer(connection: Connection) -> None:
    """Refuse to replace newer functions with older ones, even if the migrations are the same.

    A schema from before the baseline is refused too: these functions do not match its tables.
    """
    release = _value(connection, "trunkline.schema_release()", "trunkline.schema_release()")
    if release is not None and ordinal(release) > ordinal(RELEASE):
        raise SchemaNewerThanClient(
            f"The schema was applied by trunkline {release}; this package is {RELEASE}",
            hint=newer_hint(release),
        )
    contract = _value(
        connection, "trunkline.schema_version()", "(trunkline.schema_version()).contract"
    )
    if contract is None:
        return
    require_baseline(contract)
    if contract > CONTRACT:
        raise SchemaNewerThanClient(
            f"The schema has contract {contract}; this package has {CONTRACT}",
            hint=newer_hint(release),
        )


def newer_than_package(dsn: str) -> SchemaNewerThanClient | None:
    """Return an error if this package is older than the database's schema, otherwise None."""
    from trunkline.schema.session import connect  # noqa: PLC0415 - imports this module

    with connect(dsn) as connection:
        try:
            require_not_newer(connection)
        except SchemaNewerThanClient as error:
            return error
        version = _value(
            connection, "trunkline.schema_version()", "(trunkline.schema_version()).version"
        )
    if version is None or version <= len(sql.migrations()):
        return None
    return SchemaNewerThanClient(
        f"The schema has version {version}; this package ends at {len(sql.migrations())}"
    )


def _value(connection: Connection, function: str, expression: LiteralString) -> Any:
    """Return a function's result; None if the schema is too old to have the function."""
    found = connection.execute("select to_regprocedure(%s) is not null", (function,)).fetchone()
    if found is None or not found[0]:
        return None
    row = connection.execute("select " + expression).fetchone()
    return None if row is None else row[0]
