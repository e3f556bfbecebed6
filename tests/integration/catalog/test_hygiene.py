"""What is installed keeps the house rules, whoever wrote it and however it got there.

Each query gives the offenders; the answer must be empty, and the query must have looked at
something.
"""

from __future__ import annotations

import pytest

from tests.integration.catalog.conftest import Ask
from tests.support.databases import Database

FUNCTIONS = """
with functions as (
  select p.pronamespace::regnamespace::text as schema, p.proname as name, p.*, l.lanname
  from pg_proc as p join pg_language as l on l.oid = p.prolang
  where p.pronamespace in ('trunkline'::regnamespace, 'trunkline_internal'::regnamespace)
)
"""
RELATIONS = """
with relations as (
  select c.relnamespace::regnamespace::text as schema, c.relname as name, c.*
  from pg_class as c
  where c.relnamespace in ('trunkline'::regnamespace, 'trunkline_internal'::regnamespace)
)
"""
# Reads nothing of ours and must be inlined into the views that call it.
CLOCK = "(f.schema = 'trunkline' and f.name = 'clock')"

RULES = {
    "every function pins search_path with pg_temp last, but for small helpers to be inlined": f"""
        {FUNCTIONS} select f.oid::regprocedure from functions as f
        where not coalesce('search_path=pg_catalog, pg_temp' = any(f.proconfig), false)
          and not (f.lanname = 'sql' and f.schema = 'trunkline_internal')
          and not {CLOCK}
    """,
    "no function is executable by everybody": f"""
        {FUNCTIONS} select f.oid::regprocedure from functions as f
        where f.proacl is null
          or exists (select from aclexplode(f.proacl) as a where a.grantee = 0)
    """,
    "every function has a comment": f"""
        {FUNCTIONS} select f.oid::regprocedure from functions as f
        where coalesce(obj_description(f.oid, 'pg_proc'), '') = ''
    """,
    "arguments begin with p_": f"""
        {FUNCTIONS} select f.oid::regprocedure, a.name from functions as f
        cross join lateral (
          select f.proargnames[n], f.proargmodes[n]
          from generate_series(1, greatest(f.pronargs, cardinality(f.proargnames))) as n
        ) as a (name, mode)
        where coalesce(a.mode, 'i') in ('i', 'b', 'v') and coalesce(a.name, '') not like 'p\\_%'
    """,
    "functions of schema trunkline run as their owner": f"""
        {FUNCTIONS} select f.oid::regprocedure from functions as f
        where f.schema = 'trunkline' and not f.prosecdef and not {CLOCK}
    """,
    "internal functions run as their caller": f"""
        {FUNCTIONS} select f.oid::regprocedure from functions as f
        where f.schema = 'trunkline_internal' and f.prosecdef
    """,
    "no two functions share a name": f"""
        {FUNCTIONS} select f.schema, f.name from functions as f
        group by f.schema, f.name having count(*) > 1
    """,
    "no function is variadic or leaks through a barrier": f"""
        {FUNCTIONS} select f.oid::regprocedure from functions as f
        where f.provariadic <> 0 or f.proleakproof or f.prokind <> 'f'
    """,
    "functions belong to trunkline_owner": f"""
        {FUNCTIONS} select f.oid::regprocedure from functions as f
        where f.proowner <> 'trunkline_owner'::regrole
    """,
    "tables, views, sequences and composite types belong to trunkline_owner": f"""
        {RELATIONS} select r.oid::regclass from relations as r
        where r.relowner <> 'trunkline_owner'::regrole
    """,
    "every table, view, sequence and composite type has a comment": f"""
        {RELATIONS} select r.oid::regclass from relations as r
        where (
          (r.relkind in ('r', 'p', 'v', 'S') and not r.relispartition)
            and coalesce(obj_description(r.oid, 'pg_class'), '') = ''
        ) or (
          r.relkind = 'c' and coalesce(obj_description(r.reltype, 'pg_type'), '') = ''
        )
    """,
    "every table has row-level security, forced, partitions too": f"""
        {RELATIONS} select r.oid::regclass from relations as r
        where r.relkind in ('r', 'p') and not (r.relrowsecurity and r.relforcerowsecurity)
    """,
    "every table has the owner's policy and no other for everything": f"""
        {RELATIONS} select r.oid::regclass from relations as r
        where r.relkind in ('r', 'p') and not (
          select count(*) = 1 and bool_and(p.polroles = array['trunkline_owner'::regrole::oid])
          from pg_policy as p
          where p.polrelid = r.oid and p.polcmd <> 'r'
        )
    """,
    "every table with a tenant has a policy that shows his rows": f"""
        {RELATIONS} select r.oid::regclass from relations as r
        where r.relkind in ('r', 'p') and not r.relispartition
          and exists (
            select from pg_attribute as a where a.attrelid = r.oid and a.attname = 'tenant'
          )
          and not exists (
            select from pg_policy as p where p.polrelid = r.oid and p.polname = 'tenant_rows'
              and p.polcmd = 'r' and pg_get_expr(p.polqual, r.oid) like '%tenant%'
          )
    """,
    "every view of schema trunkline is a barrier": f"""
        {RELATIONS} select r.oid::regclass from relations as r
        where r.relkind = 'v' and r.schema = 'trunkline'
          and not coalesce('security_barrier=true' = any(r.reloptions), false)
    """,
    "schema trunkline has no tables": f"""
        {RELATIONS} select r.oid::regclass from relations as r
        where r.schema = 'trunkline' and r.relkind not in ('v', 'c')
    """,
    "no relation is open to everybody": f"""
        {RELATIONS} select r.oid::regclass from relations as r
        where exists (select from aclexplode(r.relacl) as a where a.grantee = 0)
    """,
    "nobody but the owner has anything in the internal schema": f"""
        {RELATIONS} select r.oid::regclass::text, a.grantee from relations as r
        cross join lateral aclexplode(r.relacl) as a
        where r.schema = 'trunkline_internal' and a.grantee <> 'trunkline_owner'::regrole
        union all
        select p.oid::regprocedure::text, a.grantee from pg_proc as p
        cross join lateral aclexplode(p.proacl) as a
        where p.pronamespace = 'trunkline_internal'::regnamespace
          and a.grantee <> 'trunkline_owner'::regrole
        union all
        select null, a.grantee from pg_namespace as n cross join lateral aclexplode(n.nspacl) as a
        where n.nspname = 'trunkline_internal' and a.grantee <> 'trunkline_owner'::regrole
    """,
    "nobody may create in our schemas": """
        select n.nspname, a.grantee from pg_namespace as n
        cross join lateral aclexplode(n.nspacl) as a
        where n.nspname in ('trunkline', 'trunkline_internal')
          and a.privilege_type = 'CREATE' and a.grantee <> n.nspowner
    """,
    "the schemas belong to trunkline_owner": """
        select n.nspname from pg_namespace as n
        where n.nspname in ('trunkline', 'trunkline_internal')
          and n.nspowner <> 'trunkline_owner'::regrole
    """,
    "our roles cannot log in and have no attributes": """
        select r.rolname from pg_roles as r
        where r.rolname in ('trunkline_owner', 'trunkline_producer', 'trunkline_worker',
                            'trunkline_operator', 'trunkline_reader')
          and (r.rolsuper or r.rolbypassrls or r.rolcanlogin or r.rolcreaterole
               or r.rolcreatedb or r.rolreplication)
    """,
    "no role of ours is a member of another": """
        select m.member::regrole, m.roleid::regrole from pg_auth_members as m
        where m.member in (
          select r.oid from pg_roles as r
          where r.rolname in ('trunkline_owner', 'trunkline_producer', 'trunkline_worker',
                              'trunkline_operator', 'trunkline_reader')
        )
    """,
    "every foreign key and every other constraint is valid": """
        select c.conname from pg_constraint as c
        where c.connamespace = 'trunkline_internal'::regnamespace and not c.convalidated
    """,
    "every index is valid": f"""
        {RELATIONS} select r.oid::regclass from relations as r
        join pg_index as i on i.indexrelid = r.oid
        where not (i.indisvalid and i.indisready)
    """,
}


@pytest.mark.parametrize("rule", RULES)
def test_rule(ask: Ask, rule: str) -> None:
    assert ask(RULES[rule]) == []


def test_the_rules_read_something(ask: Ask) -> None:
    ((functions,),) = ask(f"{FUNCTIONS} select count(*) from functions")
    ((tables,),) = ask(f"{RELATIONS} select count(*) from relations where relkind in ('r', 'p')")
    ((views,),) = ask(f"{RELATIONS} select count(*) from relations where relkind = 'v'")
    assert functions > 90
    assert tables > 15
    assert views > 10


# What breaks a rule, to see that the rule would notice.
BREACHES = {
    "every function pins": "alter function trunkline.cancel reset search_path",
    "no function is executable": "grant execute on function trunkline.cancel to public",
    "every function has": "comment on function trunkline.cancel is null",
    "arguments begin": """create function trunkline_internal.x(by integer) returns integer
        language sql as 'select 1'""",
    "functions of schema trunkline run": "alter function trunkline.cancel security invoker",
    "internal functions run": "alter function trunkline_internal.setting security definer",
    "no two functions": """create function trunkline.cancel(p_job text) returns text
        language sql as 'select 1'""",
    "no function is variadic": "alter function trunkline_internal.setting leakproof",
    "functions belong": "alter function trunkline.cancel owner to postgres_of_tests",
    "tables, views": "alter view trunkline.jobs owner to postgres_of_tests",
    "every table, view": "comment on type trunkline.verdict is null",
    "every table has row": "alter table trunkline_internal.tasks no force row level security",
    "every table has the owner": "create policy more on trunkline_internal.tasks using (true)",
    "every table with a tenant": "drop policy tenant_rows on trunkline_internal.waiting",
    "every view of": "alter view trunkline.jobs reset (security_barrier)",
    "schema trunkline has no": "create table trunkline.x ()",
    "no relation is open": "grant select on trunkline.jobs to public",
    "nobody but the owner": "grant select on trunkline_internal.tasks to trunkline_reader",
    "nobody may create": "grant create on schema trunkline to trunkline_reader",
    "the schemas belong": "alter schema trunkline owner to postgres_of_tests",
}


@pytest.mark.parametrize("start", BREACHES)
def test_a_breach_is_noticed(installed: Database, start: str) -> None:
    (rule,) = [text for name, text in RULES.items() if name.startswith(start)]
    with installed.superuser(autocommit=False) as connection:
        superuser = connection.info.user
        breach = BREACHES[start].replace("postgres_of_tests", f'"{superuser}"')
        connection.execute(breach.encode())
        assert connection.execute(rule.encode()).fetchall() != []
        connection.rollback()
