"""SECURITY.md promises forced row security everywhere; the catalogue says the same."""

from __future__ import annotations

from tests.docs.pages import ROOT
from tests.support.databases import Database
from trunkline import profiles
from trunkline.profiles import installer

_PROMISE = (
    "It is enabled and forced on every table of `trunkline_internal`, on all "
    "their partitions, and on every table of a profile."
)


def test_row_security_is_forced_where_the_page_on_security_claims_it(database: Database) -> None:
    assert _PROMISE in " ".join((ROOT / "SECURITY.md").read_text(encoding="utf-8").split())
    for name in profiles.names():
        profile = profiles.get(name)
        installer.install(database.dsn, profile, [phase.name for phase in profile.phases])
    rows = (
        database.superuser()
        .execute(
            "select c.oid::regclass::text, c.relispartition,"
            " c.relrowsecurity and c.relforcerowsecurity from pg_class as c"
            " where c.relkind in ('r', 'p') and c.relowner = 'trunkline_owner'::regrole"
        )
        .fetchall()
    )
    assert sum(partition for _, partition, _ in rows) > 3
    assert {table.partition(".")[0] for table, _, _ in rows} == {
        "trunkline_internal",
        *profiles.names(),
    }
    assert [table for table, _, forced in rows if not forced] == []
