"""What a restore does about roles: statements, notes, and whom it leaves alone."""

from typing import Any

import pytest

from tests.unit.backup.target import Target, a_manifest
from trunkline.backup import catalog, roles
from trunkline.backup.compared import Compared
from trunkline.backup.restoring import _become_owners, _counted, _owning, _require_fit
from trunkline.backup.roles import Outcome
from trunkline.errors import RestoreIncomplete, RestoreRefused, RestoreTargetNotEmpty


def _role(name: str, *, login: bool = False, inherit: bool = True, attributes: Any = ()) -> Any:
    return {"role": name, "login": login, "inherit": inherit, "attributes": list(attributes)}


def _member(role: str, member: str, *, admin: bool = False, inherit: bool = True) -> Any:
    return {"role": role, "member": member, "admin": admin, "inherit": inherit, "set": True}


def test_missing_roles_are_created_without_a_login() -> None:
    target: Any = Target({"select r.rolname from pg_roles": [("there",)]})
    manifest = a_manifest(
        roles=(
            _role("c", login=True),
            _role("there", login=True, attributes=["superuser"]),
            _role("a", inherit=False, attributes=["createrole", "createdb"]),
        )
    )
    outcome = roles.create(target, manifest)
    assert target.ran == ['create role "c" nologin inherit', 'create role "a" nologin noinherit']
    assert (outcome.created, outcome.logins) == (["c", "a"], ["c"])
    assert outcome.notes == [
        "role a had createrole createdb; to restore that, run: alter role a createrole createdb"
    ]
    target.ran.clear()
    roles.drop(target, outcome)
    assert target.ran == ['drop role "a"', 'drop role "c"']
    target.refused.add('"c"')
    roles.drop(target, outcome)
    assert outcome.notes[-1] == 'drop role "c": permission denied'


def test_grants_settings_and_memberships_follow_in_this_order() -> None:
    target: Any = Target({"pg_auth_members": [], "pg_db_role_setting": [], "not r.rolsuper": []})
    manifest = a_manifest(
        grants=(
            {"role": None, "right": "connect", "grantable": False},
            {"role": "x", "right": "create", "grantable": True},
        ),
        settings=(
            {"role": None, "in_database": True, "name": "work_mem", "value": "1MB"},
            {"role": "new", "in_database": False, "name": "app.x", "value": "1"},
            {"role": "old", "in_database": False, "name": "app.y", "value": "2"},
            {"role": "old", "in_database": True, "name": "app.z", "value": "3"},
        ),
        memberships=(_member("trunkline_reader", "free"),),
    )
    outcome = Outcome(created=["new"])
    roles.finish(target, manifest, outcome)
    assert [text for text in target.ran if not text.startswith("select set_config")] == [
        'grant connect on database "d" to public',
        'grant create on database "d" to "x" with grant option',
        'revoke temporary on database "d" from public',
        'alter database "d" set "work_mem" from current',
        'alter role "new" set "app"."x" from current',
        'alter role "old" in database "d" set "app"."z" from current',
        'grant "trunkline_reader" to "free" with admin false, inherit true, set true',
    ]
    assert "select set_config(%s, %s, true) ('app.x', '1')" in target.ran
    assert outcome.notes == []


def test_what_is_refused_is_left_to_an_administrator() -> None:
    target: Any = Target({"pg_auth_members": [], "pg_db_role_setting": [], "not r.rolsuper": []})
    target.refused = {"on database", "set_config", "grant "}
    manifest = a_manifest(
        settings=({"role": None, "in_database": True, "name": "work_mem", "value": "1MB"},),
        memberships=(_member("r", "m"),),
    )
    outcome = Outcome()
    roles.finish(target, manifest, outcome)
    assert outcome.notes == [
        'revoke connect on database "d" from public: permission denied',
        'revoke temporary on database "d" from public: permission denied',
        'database "d" set work_mem: permission denied',
        'grant "r" to "m" with admin false, inherit true, set true: permission denied',
    ]


@pytest.mark.parametrize(
    ("major", "member", "admin", "tail"),
    [
        (16, "m", True, " with admin true, inherit false, set true"),
        (16, "me", True, " with admin false, inherit false, set true"),
        (15, "m", True, " with admin option"),
        (15, "me", True, ""),
        (15, "m", False, ""),
    ],
)
def test_a_membership_is_granted_as_the_server_takes_it(
    major: int, member: str, admin: bool, tail: str
) -> None:
    target: Any = Target(major=major)
    granted = roles._grant_role(  # noqa: SLF001
        target, _member("r", member, admin=admin, inherit=False)
    )
    assert granted.as_string(None) == f'grant "r" to "{member}"{tail}'


@pytest.mark.parametrize(
    ("here", "there", "has"),
    [
        ((None, None, None), (False, False, False), False),
        ((False, False, False), (False, False, False), True),
        ((False, True, True), (False, True, True), True),
        ((False, True, True), (True, True, True), False),
        ((True, False, True), (True, True, False), False),
        ((True, True, False), (False, False, True), False),
        ((True, True, True), (False, False, False), True),
    ],
)
def test_a_membership_is_there_if_it_has_all_its_options(
    here: tuple[Any, ...], there: tuple[bool, ...], has: bool
) -> None:
    target: Any = Target({"bool_or": [here], "pg_db_role_setting": []})
    membership = dict(zip(("admin", "inherit", "set"), there, strict=True))
    compared = Compared(target, a_manifest())
    assert compared.has({"role": "r", "member": "m", **membership}) is has
    nobody: Any = Target({"bool_or": [], "pg_db_role_setting": []})
    assert Compared(nobody, a_manifest()).has({"role": "r", "member": "m", **membership}) is False


def _setting(role: str | None, name: str, value: str, *, in_database: bool = False) -> Any:
    return {"role": role, "in_database": in_database, "name": name, "value": value}


def test_a_role_that_was_confined_must_be_so_here() -> None:
    settings = (
        _setting("m", "app.tenant", "b", in_database=True),
        _setting("m", "app.tenant", "a"),
        _setting("m", "search_path", '"x", y'),
        _setting(None, "work_mem", "1MB", in_database=True),
    )
    rows = [("m", False, "search_path", '"x", y'), (None, True, "work_mem", "2MB")]
    target: Any = Target({"pg_db_role_setting": rows, "not r.rolsuper": []})
    compared = Compared(target, a_manifest(settings=settings))
    # The setting of the database comes before the role's own.
    assert compared.obstacle("m") == (
        "the settings of role m differ from the backup; if it is the same role, run this first:"
        ' alter role "m" set "app"."tenant" = \'b\''
    )
    rows[0] = ("m", True, "app.tenant", "b")
    compared = Compared(target, a_manifest(settings=settings))
    obstacle = compared.obstacle("m")
    assert obstacle is not None
    assert obstacle.endswith('run this first: alter role "m" set "search_path" = "x", y')
    rows[1:] = [("m", False, "search_path", '"x", y'), ("m", False, "app.tenant", "z")]
    assert Compared(target, a_manifest(settings=settings)).obstacle("m") is None


@pytest.mark.parametrize(("major", "right"), [(15, "member"), (16, "set"), (17, "set")])
def test_nobody_gets_a_membership_through_another_role(major: int, right: str) -> None:
    asked: list[Any] = []

    def users(parameters: Any) -> Any:
        asked.append(parameters)
        return [("inner",), ("stranger",)]

    target: Any = Target({"pg_db_role_setting": [], "not r.rolsuper": users}, major=major)
    known = (_member("m", "middle"), _member("middle", "inner"), _member("inner", "m"))
    compared = Compared(target, a_manifest(memberships=known))
    assert compared.obstacle("m") == (
        "role stranger would also get it, but did not have it in the backup"
    )
    assert asked == [{"role": "m", "right": right}]
    settled = (*known, _member("m", "stranger"))
    assert Compared(target, a_manifest(memberships=settled)).obstacle("m") is None


@pytest.mark.parametrize(
    ("found", "major", "granted"),
    [
        ([("me", True)], 16, []),
        ([("me", False)], 16, ['grant trunkline_owner to "me" with inherit true, set true']),
        ([("me", False)], 15, ['grant trunkline_owner to "me"']),
        ([], 16, ['grant trunkline_owner to "i" with inherit true, set true']),
    ],
)
def test_the_installer_becomes_a_member_of_the_owner(
    found: Any, major: int, granted: list[str]
) -> None:
    target: Any = Target({"coalesce(%s, current_user)": found}, major=major)
    roles.adopt_installer(target, "i")
    name = found[0][0] if found else "i"
    *before, role, recorded = target.ran
    assert (before, role) == (granted, "set local role trunkline_owner")
    assert recorded.startswith("insert into ")
    assert recorded.endswith(f"installers (role) values (%s) on conflict do nothing ('{name}',)")


def _owned(target: Any, *owners: str) -> tuple[list[str], list[str]]:
    undo: list[Any] = []
    withdraw: list[Any] = []
    _become_owners(target, a_manifest(owners=owners), undo, withdraw)
    return [one.as_string(None) for one in undo], [one.as_string(None) for one in withdraw]


def test_a_role_becomes_a_member_of_the_owners_for_a_while() -> None:
    target: Any = Target({"pg_has_role": [(False, False)]})
    undo, withdraw = _owned(target, "o", "trunkline_owner")
    assert target.ran == [
        'grant "o" to current_user with inherit true, set true',
        'grant create on database "d" to "o"',
        'grant "trunkline_owner" to current_user with inherit true, set true',
        'grant create on database "d" to "trunkline_owner"',
    ]
    assert undo == [
        'revoke "o" from current_user',
        'revoke create on database "d" from "o"',
        'revoke create on database "d" from "trunkline_owner"',
    ]
    assert withdraw == ['revoke "trunkline_owner" from current_user']
    older: Any = Target({"pg_has_role": [(False, True)]}, major=15)
    assert _owned(older, "o") == (['revoke "o" from current_user'], [])
    assert older.ran == ['grant "o" to current_user']
    assert _owned(Target({"pg_has_role": [(True, True)]}), "o") == ([], [])
    assert _owned(Target({"pg_has_role": [(True, False)]}), "o")[0] == [
        'revoke create on database "d" from "o"'
    ]


def test_a_role_that_cannot_become_an_owner_receives_a_hint() -> None:
    target: Any = Target({"pg_has_role": [(False, False)]})
    target.refused.add("grant ")
    with pytest.raises(RestoreRefused) as refused:
        _owned(target, "o")
    assert str(refused.value) == "This role cannot create objects of o: permission denied"
    assert refused.value.hint.endswith("let an administrator run: grant o to me;")


@pytest.mark.parametrize("fails", [False, True])
def test_what_was_granted_for_the_restore_is_revoked_in_reverse(fails: bool) -> None:
    target: Any = Target({"r.rolsuper from": [(False,)], "pg_has_role": [(False, False)]})
    manifest = a_manifest(owners=("o", "trunkline_owner"))

    def story() -> None:
        with _owning(target, manifest):
            target.ran.clear()
            if fails:
                raise KeyError("x")

    if fails:
        with pytest.raises(KeyError):
            story()
    else:
        story()
    withdrawn = ['revoke "trunkline_owner" from current_user'] if fails else []
    assert target.ran == [
        *withdrawn,
        'revoke create on database "d" from "trunkline_owner"',
        'revoke create on database "d" from "o"',
        'revoke "o" from current_user',
    ]


def test_a_superuser_needs_no_membership() -> None:
    target: Any = Target({"r.rolsuper from": [(True,)]})
    with _owning(target, a_manifest(owners=("o",))):
        pass
    assert target.ran == []


@pytest.fixture
def contents(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(catalog, "contents", lambda _: found)
    return found


def test_a_target_that_is_not_empty_is_refused_with_what_it_has(contents: list[str]) -> None:
    target: Any = Target({"pg_available_extensions": []})
    contents += ["t1", "t2", "t3", "t4", "t5"]
    with pytest.raises(RestoreTargetNotEmpty) as refused:
        _require_fit(target, a_manifest(), 16)
    assert str(refused.value) == "d is not empty: it has t1, t2, t3, t4, t5"
    contents.append("t6")
    with pytest.raises(RestoreTargetNotEmpty, match=r"t4, t5, …$"):
        _require_fit(target, a_manifest(), 16)


def test_a_target_must_be_new_enough_and_have_the_extensions(contents: list[str]) -> None:
    target: Any = Target({"pg_available_extensions": [("b",)]})
    _require_fit(target, a_manifest(extensions=("b",)), 16)
    with pytest.raises(RestoreRefused) as refused:
        _require_fit(target, a_manifest(), 15)
    assert str(refused.value) == "The backup is of PostgreSQL 16; the target is 15"
    assert refused.value.hint == "Restore into PostgreSQL 16 or newer."
    with pytest.raises(RestoreRefused) as refused:
        _require_fit(target, a_manifest(extensions=("c", "b", "a")), 17)
    assert str(refused.value) == "The target server lacks extensions: c, a"


def test_rows_are_counted_after_a_restore(monkeypatch: pytest.MonkeyPatch) -> None:
    target: Any = Target()
    rows = {"b.t": 1, "a.t": 2}
    monkeypatch.setattr(catalog, "count_rows", lambda _: rows)
    assert _counted(target, a_manifest(rows=dict(rows))) == rows
    assert target.ran == ["set transaction isolation level repeatable read"]
    with pytest.raises(RestoreIncomplete) as refused:
        _counted(target, a_manifest(rows={"b.t": 5, "c.t": 7, "a.t": 2}))
    assert str(refused.value) == "b.t has 1 rows instead of 5; c.t has 0 rows instead of 7"
