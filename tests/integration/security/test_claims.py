"""A setting narrows and never widens: rights come from membership alone."""

from __future__ import annotations

import psycopg
import pytest

from tests.integration.security.conftest import Tenants

NOBODY = [
    None,
    "",
    " ",
    "{}",
    "null",
    "3",
    "[]",
    '"a"',
    "{",
    "tenant=a",
    '{"tenant": null}',
    '{"tenant": ""}',
    '{"tenant": ["a"]}',
    '{"tenant": {"a": "a"}}',
    '{"tenant": "\\u0000"}',
    '{"tenant": "\\ud800"}',
    '{"Tenant": "a"}',
    '{"sub": "a"}',
    '{"tenant": 1e999999}',
    "[" * 50_000,
]
# What a platform's own functions would take for a privileged caller.
BOASTS = [
    ("request.jwt.claims", '{"role": "service_role"}'),
    ("request.jwt.claims", '{"role": "trunkline_operator"}'),
    ("request.jwt.claim.role", "service_role"),
    ("trunkline.role", "trunkline_operator"),
    ("trunkline.superuser", "on"),
    ("trunkline.tenant", ""),
]


@pytest.mark.parametrize("claims", NOBODY, ids=lambda claims: repr(claims)[:30])
def test_claims_that_name_no_tenant_show_nothing(tenants: Tenants, claims: str | None) -> None:
    connection = tenants.bound(claims)
    assert connection.execute("select count(*) from trunkline.jobs").fetchone() == (0,)
    job = tenants.jobs["a"]["ready"]
    assert connection.execute("select from trunkline.job(%s)", (job,)).fetchall() == []
    for call in ("cancel", "explain"):
        with pytest.raises(psycopg.Error) as refused:
            connection.execute(f"select trunkline.{call}(%s)".encode(), (job,))
        assert refused.value.sqlstate == "TL015"
    connection.close()


@pytest.mark.parametrize("claims", NOBODY, ids=lambda claims: repr(claims)[:30])
def test_members_act_for_all_whatever_the_claims(tenants: Tenants, claims: str | None) -> None:
    connection = tenants.database.connect("trunkline_reader")
    connection.execute("select set_config('request.jwt.claims', %s, false)", (claims,))
    row = connection.execute("select count(distinct tenant) from trunkline.jobs").fetchone()
    # A claim that is some other text names a tenant that has nothing.
    strange = claims in {'{"tenant": ["a"]}', '{"tenant": {"a": "a"}}'}
    assert row == (0,) if strange else (2,)
    connection.close()


@pytest.mark.parametrize(("name", "value"), BOASTS)
def test_a_setting_gives_no_right(tenants: Tenants, name: str, value: str) -> None:
    connection = tenants.bound(None)
    connection.execute("select set_config(%s, %s, false)", (name, value))
    assert connection.execute("select trunkline.tenant_scope()").fetchone() == ("",)
    assert connection.execute("select count(*) from trunkline.jobs").fetchone() == (0,)
    for statement in (
        "select trunkline.claim('w')",
        "select trunkline.register_task('report')",
        "select trunkline.set_setting('lease', '1 hour')",
        "select from trunkline.events",
        "select from trunkline_internal.waiting",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
            connection.execute(statement.encode())
    connection.close()


@pytest.mark.parametrize(
    "role", ["trunkline_owner", "trunkline_operator", "trunkline_worker", "trunkline_reader"]
)
def test_a_tenant_cannot_take_a_role_of_ours(tenants: Tenants, role: str) -> None:
    connection = tenants.bound()
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(f"set role {role}".encode())
    # The setting behind SET ROLE, which tenant_scope reads, is checked alike.
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("select set_config('role', %s, false)", (role,))
    assert connection.execute("select trunkline.tenant_scope()").fetchone() == ("a",)
    connection.close()


def test_a_narrowed_member_gets_no_more_functions(tenants: Tenants) -> None:
    producer = tenants.narrowed("producer")
    for statement in ("select trunkline.claim('w')", "select trunkline.retry(null)"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
            producer.execute(statement.encode())
    producer.close()


def test_membership_through_set_role_counts(tenants: Tenants) -> None:
    """A login that takes one of our roles acts for all, and for nobody once it let go of it."""
    name = f"login_{tenants.role}"
    tenants.looker.execute(f"create role {name} login noinherit".encode())
    tenants.looker.execute(f"grant trunkline_reader to {name}".encode())
    try:
        connection = tenants.database.connect(name)
        connection.execute("set role trunkline_reader")
        query = "select count(distinct tenant) from trunkline.jobs"
        assert connection.execute(query).fetchone() == (2,)
        connection.execute("reset role")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(query)
        connection.close()
    finally:
        tenants.looker.execute(f"drop role {name}".encode())


def test_claims_are_believed_of_authenticators_alone(tenants: Tenants) -> None:
    """A person who logs in with the role of tenants could write any tenant into a setting."""
    direct = tenants.database.connect(tenants.role)
    job = tenants.jobs["a"]["ready"]
    for name, value in (("request.jwt.claims", '{"tenant": "a"}'), ("trunkline.tenant", "a")):
        direct.execute("select set_config(%s, %s, false)", (name, value))
        assert direct.execute("select trunkline.tenant_scope()").fetchone() == ("",)
        assert direct.execute("select count(*) from trunkline.jobs").fetchone() == (0,)
        for call, code in (("cancel", "TL015"), ("explain", "TL015")):
            with pytest.raises(psycopg.Error) as refused:
                direct.execute(f"select trunkline.{call}(%s)".encode(), (job,))
            assert refused.value.sqlstate == code
        with pytest.raises(psycopg.Error) as refused:
            direct.execute("select trunkline.enqueue('report')")
        assert refused.value.sqlstate == "TL017"
        direct.execute("select set_config(%s, '', false)", (name,))
    direct.close()


@pytest.mark.parametrize("listed", ["{gateway}", "x,{gateway}", " x , {gateway} ,y"])
def test_authenticators_are_a_list_of_names(tenants: Tenants, listed: str) -> None:
    setting = "select trunkline.set_setting('authenticators', %s)"
    try:
        tenants.looker.execute(setting, (listed.format(gateway=tenants.gateway),))
        assert tenants.bound().execute("select trunkline.tenant_scope()").fetchone() == ("a",)
        tenants.looker.execute(setting, (f"{tenants.gateway}_2, x{tenants.gateway}",))
        assert tenants.bound().execute("select trunkline.tenant_scope()").fetchone() == ("",)
    finally:
        tenants.looker.execute(setting, (tenants.gateway,))


def test_the_name_of_the_claim_is_a_setting_of_the_operator(tenants: Tenants) -> None:
    operator = tenants.database.connect("trunkline_operator")
    operator.execute("select trunkline.set_setting('tenant_claim', 'organisation')")
    try:
        seen = tenants.bound('{"organisation": "b", "tenant": "a"}').execute(
            "select distinct tenant from trunkline.jobs"
        )
        assert seen.fetchall() == [("b",)]
    finally:
        operator.execute("select trunkline.set_setting('tenant_claim', null)")
        operator.close()


def test_a_setting_and_claims_that_differ_show_nothing(tenants: Tenants) -> None:
    """Whoever holds the claims of one tenant cannot name another beside them."""
    member = tenants.database.connect("trunkline_reader")
    member.execute("""set request.jwt.claims = '{"tenant": "a"}'""")
    for tenant, seen in (("a", "a"), ("b", ""), ("", "a")):
        member.execute("select set_config('trunkline.tenant', %s, false)", (tenant,))
        assert member.execute("select trunkline.tenant_scope()").fetchone() == (seen,)
    member.execute("set trunkline.tenant = 'b'")
    assert member.execute("select count(*) from trunkline.jobs").fetchone() == (0,)
