"""Queries for the objects of some schemas and the roles, one per kind of object.

Each query returns rows of (name, attributes as JSON). ``:schemas`` stands for an array of names.
The session's search_path must contain only pg_catalog, so that our names are printed with their
schema. Differences between PostgreSQL 15 and 18 are left out here or removed in `catalog`.
"""

from __future__ import annotations

from typing import Final, LiteralString

# Partitions change daily, so only the default ones, which a migration creates, are compared by
# name; `walls` checks owner and row security of the others.
_OBJECTS: Final = """
with spaces as (
  select n.oid, n.nspname from pg_namespace as n
  where n.nspname = any (:schemas)
),
relations as (
  select c.*, format('%I.%I', s.nspname, c.relname) as name
  from pg_class as c join spaces as s on s.oid = c.relnamespace
),
lasting as (
  select * from relations where not relispartition
)
"""

_ROLES: Final = """
select r.rolname, jsonb_build_object(
  'login', r.rolcanlogin,
  'superuser', r.rolsuper,
  'bypassrls', r.rolbypassrls,
  'createdb', r.rolcreatedb,
  'createrole', r.rolcreaterole,
  'replication', r.rolreplication)
from pg_roles as r
where r.rolname in ('trunkline_owner', 'trunkline_producer', 'trunkline_worker',
  'trunkline_operator', 'trunkline_reader')
"""

_MEMBERSHIPS: Final = """
select format('%I in %I', m.rolname, g.rolname), '{}'::jsonb
from pg_auth_members as a
join pg_roles as g on g.oid = a.roleid
join pg_roles as m on m.oid = a.member
where g.rolname in ('trunkline_owner', 'trunkline_producer', 'trunkline_worker',
    'trunkline_operator', 'trunkline_reader')
  and m.rolname in ('trunkline_owner', 'trunkline_producer', 'trunkline_worker',
    'trunkline_operator', 'trunkline_reader')
group by 1
"""

_SCHEMAS: Final = """
select quote_ident(n.nspname), jsonb_build_object(
  'owner', pg_get_userbyid(n.nspowner),
  'comment', obj_description(n.oid, 'pg_namespace'))
from pg_namespace as n
where n.nspname = any (:schemas)
"""

_DEFAULT_PRIVILEGES: Final = """
select format('on %s in %s',
    case d.defaclobjtype
      when 'r' then 'tables' when 'S' then 'sequences' when 'f' then 'functions'
      when 'T' then 'types' when 'n' then 'schemas' else d.defaclobjtype::text
    end,
    coalesce(quote_ident(n.nspname), 'every schema')),
  jsonb_build_object('grants', (
    select coalesce(jsonb_agg(g.said order by g.said), '[]')
    from aclexplode(d.defaclacl) as a,
      format('%s to %s', lower(a.privilege_type),
        case a.grantee when 0 then 'public' else pg_get_userbyid(a.grantee)::text end) as g (said)
    where a.grantee <> d.defaclrole))
from pg_default_acl as d
left join pg_namespace as n on n.oid = d.defaclnamespace
where d.defaclrole = (select r.oid from pg_roles as r where r.rolname = 'trunkline_owner')
"""

_TABLES: Final = """
select c.name, jsonb_build_object(
  'owner', pg_get_userbyid(c.relowner),
  'partitioned', pg_get_partkeydef(c.oid),
  'persistence', c.relpersistence,
  'row security', c.relrowsecurity,
  'forced row security', c.relforcerowsecurity,
  'replica identity', c.relreplident,
  'options', (select jsonb_agg(o order by o) from unnest(c.reloptions) as o),
  'comment', obj_description(c.oid, 'pg_class'))
from lasting as c
where c.relkind in ('r', 'p', 'f', 'm')
"""

_DEFAULT_PARTITIONS: Final = """
select c.name, jsonb_build_object(
  'owner', pg_get_userbyid(c.relowner),
  'parent', i.inhparent::regclass::text,
  'row security', c.relrowsecurity,
  'forced row security', c.relforcerowsecurity)
from relations as c
join pg_inherits as i on i.inhrelid = c.oid
where c.relkind in ('r', 'p') and c.relispartition
  and pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT'
"""

_COLUMNS: Final = """
select format('%s.%s', c.name, a.attname), jsonb_build_object(
  'type', format_type(a.atttypid, a.atttypmod),
  'not null', a.attnotnull,
  'default', pg_get_expr(d.adbin, d.adrelid),
  'identity', a.attidentity,
  'generated', a.attgenerated,
  'collation',
    case when a.attcollation <> t.typcollation then a.attcollation::regcollation::text end,
  'storage', case when a.attstorage <> t.typstorage then a.attstorage end,
  'compression', a.attcompression,
  -- "unset" is -1 until PostgreSQL 16 and null later
  'statistics', nullif(a.attstattarget, -1),
  'options', (select jsonb_agg(o order by o) from unnest(a.attoptions) as o),
  'comment', col_description(c.oid, a.attnum))
from lasting as c
join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
join pg_type as t on t.oid = a.atttypid
left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum
where c.relkind in ('r', 'p', 'v', 'm', 'f', 'c')
"""

_CONSTRAINTS: Final = """
select format('%s.%s', coalesce(c.name, k.contypid::regtype::text), k.conname), jsonb_build_object(
  'definition', pg_get_constraintdef(k.oid),
  'comment', obj_description(k.oid, 'pg_constraint'))
from pg_constraint as k
join spaces as s on s.oid = k.connamespace
left join lasting as c on c.oid = k.conrelid
-- PostgreSQL 18 lists NOT NULL here too; the columns say it on every version. A constraint with a
-- parent is the copy that a partition has.
where k.contype <> 'n' and k.conparentid = 0 and (c.oid is not null or k.contypid <> 0)
"""

_INDEXES: Final = """
select c.name, jsonb_build_object(
  'definition', pg_get_indexdef(c.oid),
  'valid', i.indisvalid and i.indisready,
  'comment', obj_description(c.oid, 'pg_class'))
from lasting as c
join pg_index as i on i.indexrelid = c.oid
join lasting as t on t.oid = i.indrelid
where not exists (
  select from pg_constraint as k where k.conindid = c.oid and k.contype in ('p', 'u', 'x'))
"""

_SEQUENCES: Final = """
select c.name, jsonb_build_object(
  'owner', pg_get_userbyid(c.relowner),
  'type', format_type(q.seqtypid, null),
  'start', q.seqstart,
  'increment', q.seqincrement,
  'minimum', q.seqmin,
  'maximum', q.seqmax,
  'cache', q.seqcache,
  'cycle', q.seqcycle,
  'persistence', c.relpersistence,
  'owned by', (
    select format('%s.%s', d.refobjid::regclass, a.attname)
    from pg_depend as d
    join pg_attribute as a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
    where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('a', 'i')
      and d.refclassid = 'pg_class'::regclass and d.refobjsubid > 0),
  'comment', obj_description(c.oid, 'pg_class'))
from lasting as c
join pg_sequence as q on q.seqrelid = c.oid
"""

_TYPES: Final = """
select t.oid::regtype::text, jsonb_build_object(
  'owner', pg_get_userbyid(t.typowner),
  'kind', t.typtype,
  'attributes', (
    select jsonb_agg(a.attname order by a.attnum)
    from pg_attribute as a
    where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped),
  'labels', (
    select jsonb_agg(e.enumlabel order by e.enumsortorder)
    from pg_enum as e
    where e.enumtypid = t.oid),
  'base', case when t.typtype = 'd' then format_type(t.typbasetype, t.typtypmod) end,
  'not null', t.typnotnull,
  'default', t.typdefault,
  'comment', obj_description(t.oid, 'pg_type'))
from pg_type as t
join spaces as s on s.oid = t.typnamespace
left join relations as c on c.oid = t.typrelid
-- Not the row types of tables and views, nor the arrays that come with every type.
where (t.typrelid = 0 or c.relkind = 'c') and t.typelem = 0 and t.typtype <> 'm'
"""

_FUNCTIONS: Final = """
select p.oid::regprocedure::text, jsonb_build_object(
  'owner', pg_get_userbyid(p.proowner),
  'kind', p.prokind,
  'arguments', pg_get_function_arguments(p.oid),
  'result', pg_get_function_result(p.oid),
  'language', l.lanname,
  'volatility',
    case p.provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end,
  'strict', p.proisstrict,
  'parallel', case p.proparallel when 's' then 'safe' when 'r' then 'restricted' else 'unsafe' end,
  'leakproof', p.proleakproof,
  'security definer', p.prosecdef,
  'settings', (select jsonb_agg(o order by o) from unnest(p.proconfig) as o),
  'cost', p.procost,
  'rows', p.prorows,
  'support', nullif(p.prosupport, 0)::regproc::text,
  'body', coalesce(pg_get_function_sqlbody(p.oid), p.prosrc),
  'comment', obj_description(p.oid, 'pg_proc'))
from pg_proc as p
join spaces as s on s.oid = p.pronamespace
join pg_language as l on l.oid = p.prolang
"""

# The server generates the definition, and `catalog` removes differences between versions. That
# step drops qualifiers, so the query also returns what the view reads (tables, columns, functions).
_VIEWS: Final = """
select c.name, jsonb_build_object(
  'owner', pg_get_userbyid(c.relowner),
  'options', (select jsonb_agg(o order by o) from unnest(c.reloptions) as o),
  'columns', (
    select jsonb_agg(a.attname order by a.attnum)
    from pg_attribute as a
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped),
  'definition', pg_get_viewdef(c.oid),
  'reads', (
    select jsonb_agg(distinct format('%s %s', o.type, o.identity))
    from pg_rewrite as r
    join pg_depend as d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid,
      pg_identify_object(d.refclassid, d.refobjid, d.refobjsubid) as o
    -- not the view itself, which PostgreSQL 15 lists too
    where r.ev_class = c.oid and d.deptype = 'n' and d.refobjid <> c.oid),
  'comment', obj_description(c.oid, 'pg_class'))
from lasting as c
where c.relkind in ('v', 'm')
"""

_TRIGGERS: Final = """
select format('%s.%s', c.name, t.tgname), jsonb_build_object(
  'definition', pg_get_triggerdef(t.oid),
  'enabled', t.tgenabled,
  'comment', obj_description(t.oid, 'pg_trigger'))
from lasting as c
join pg_trigger as t on t.tgrelid = c.oid and not t.tgisinternal and t.tgparentid = 0
"""

_RULES: Final = """
select format('%s.%s', c.name, r.rulename), jsonb_build_object(
  'definition', pg_get_ruledef(r.oid),
  'enabled', r.ev_enabled)
from lasting as c
join pg_rewrite as r on r.ev_class = c.oid and r.rulename <> '_RETURN'
"""

_POLICIES: Final = """
select format('%s.%s', c.name, p.polname), jsonb_build_object(
  'command', p.polcmd,
  'permissive', p.polpermissive,
  'roles', (
    select jsonb_agg(case r when 0 then 'public' else pg_get_userbyid(r)::text end order by 1)
    from unnest(p.polroles) as r),
  'using', pg_get_expr(p.polqual, p.polrelid),
  'with check', pg_get_expr(p.polwithcheck, p.polrelid),
  'comment', obj_description(p.oid, 'pg_policy'))
from relations as c
join pg_policy as p on p.polrelid = c.oid
where not c.relispartition or pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT'
"""

_STATISTICS: Final = """
select format('%s.%s', s.nspname, x.stxname), jsonb_build_object(
  'definition', pg_get_statisticsobjdef(x.oid),
  'comment', obj_description(x.oid, 'pg_statistic_ext'))
from pg_statistic_ext as x
join spaces as s on s.oid = x.stxnamespace
"""

# The owner's own privileges are left out, because PostgreSQL 17 has one more. Without an ACL, only
# functions are open to PUBLIC.
_GRANTS: Final = """
, objects as (
  select 'schema ' || quote_ident(n.nspname) as object, n.nspowner as owner, n.nspacl as acl
  from pg_namespace as n join spaces as s on s.oid = n.oid
  union all
  select case c.relkind when 'v' then 'view ' when 'S' then 'sequence ' else 'table ' end || c.name,
    c.relowner, c.relacl
  from relations as c
  where c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
  union all
  select format('column %s.%s', c.name, a.attname), c.relowner, a.attacl
  from relations as c join pg_attribute as a on a.attrelid = c.oid and a.attacl is not null
  union all
  select 'function ' || p.oid::regprocedure, p.proowner,
    coalesce(p.proacl, acldefault('f', p.proowner))
  from pg_proc as p join spaces as s on s.oid = p.pronamespace
)
select format('%s on %s to %s', lower(x.privilege_type), o.object,
    case x.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(x.grantee)) end),
  jsonb_build_object('grant option', bool_or(x.is_grantable))
from objects as o, aclexplode(o.acl) as x
where x.grantee <> o.owner
group by 1
"""

_MIGRATIONS: Final = """
select format('%s_%s', lpad(m.version::text, 4, '0'), m.name),
  jsonb_build_object('sha256', m.sha256, 'breaking', m.breaking)
from trunkline_internal.schema_migrations as m
"""

QUERIES: Final[dict[str, LiteralString]] = {
    "role": _ROLES,
    "membership": _MEMBERSHIPS,
    "schema": _SCHEMAS,
    "default privileges": _DEFAULT_PRIVILEGES,
    "table": _OBJECTS + _TABLES,
    "default partition": _OBJECTS + _DEFAULT_PARTITIONS,
    "column": _OBJECTS + _COLUMNS,
    "constraint": _OBJECTS + _CONSTRAINTS,
    "index": _OBJECTS + _INDEXES,
    "sequence": _OBJECTS + _SEQUENCES,
    "type": _OBJECTS + _TYPES,
    "function": _OBJECTS + _FUNCTIONS,
    "view": _OBJECTS + _VIEWS,
    "trigger": _OBJECTS + _TRIGGERS,
    "rule": _OBJECTS + _RULES,
    "policy": _OBJECTS + _POLICIES,
    "statistics": _OBJECTS + _STATISTICS,
    "grant": _OBJECTS + _GRANTS,
}
# Only members of the owner may read this table. Every role may read the catalogues above.
MIGRATIONS: Final[LiteralString] = _MIGRATIONS
