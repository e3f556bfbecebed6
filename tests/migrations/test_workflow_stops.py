"""Workflows that were stopped before their kind of stop was stored get it from their reasons."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.migrations.conftest import NewDatabase
from tests.migrations.forward import install_only
from tests.support.internals import workflows
from tests.support.servers import Server
from trunkline import sql
from trunkline.schema import upgrade


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({}, None),
        ({"stopped": True, "reason": "enough"}, "cancel"),
        ({"stopped": True, "reason": "deadline", "is_late": True}, "deadline"),
        ({"stopped": True, "reason": "deadline", "is_late": False}, "cancel"),
        ({"stopped": True, "reason": "parent ended", "is_child": True}, "parent"),
        ({"stopped": True, "reason": "parent ended"}, "cancel"),
    ],
)
def test_the_kind_of_stop_comes_from_the_reason(
    server: Server, new_database: NewDatabase, values: dict[str, Any], kind: str | None
) -> None:
    dsn = new_database()
    [place] = [n for n, one in enumerate(sql.migrations()) if one.name == "workflow_stops"]
    install_only(dsn, sql.migrations()[:place])
    name = str(conninfo_to_dict(dsn)["dbname"])
    with psycopg.connect(server.dsn(name, superuser=True), autocommit=True) as superuser:
        workflows.insert_old(superuser, **values)
        upgrade(dsn)
        assert workflows.stop_kinds(superuser) == [kind]
