"""Finds the user's objects that would be dropped, or would break, with our schemas."""

from __future__ import annotations

from typing import Final, LiteralString

from trunkline.schema.session import Connection

__all__ = ["dependants"]

# Follows pg_depend outwards from our objects. Rules, defaults, constraints, triggers and policies
# are listed themselves if they are on one of our relations. Otherwise their relation is listed: a
# view depends through its rule. Objects of profiles are listed under their profile.
_DEPENDANTS: Final[LiteralString] = """
with recursive profiles as (
  select c.relnamespace as oid
  from pg_class as c
  where c.relname = 'trunkline_profile_steps' and c.relkind = 'r'
),
ours as (
  select 'pg_class'::regclass::oid as classid, c.oid as objid
  from pg_class as c
  where c.relnamespace in (to_regnamespace('trunkline'), to_regnamespace('trunkline_internal'))
  union all
  select 'pg_proc'::regclass, p.oid
  from pg_proc as p
  where p.pronamespace in (to_regnamespace('trunkline'), to_regnamespace('trunkline_internal'))
  union all
  select 'pg_type'::regclass, t.oid
  from pg_type as t
  where t.typnamespace in (to_regnamespace('trunkline'), to_regnamespace('trunkline_internal'))
),
gone (classid, objid, objsubid) as (
  select o.classid, o.objid, 0 from ours as o
  union
  select n.classid, n.objid, n.objsubid
  from gone as g
  cross join lateral (
    select d.classid, d.objid, d.objsubid
    from pg_depend as d
    where d.refclassid = g.classid and d.refobjid = g.objid and d.deptype in ('n', 'a')
      and (g.objsubid = 0 or d.refobjsubid = g.objsubid)
    union all
    -- A view is dropped with its rule.
    select 'pg_class'::regclass, r.ev_class, 0
    from pg_rewrite as r
    where g.classid = 'pg_rewrite'::regclass and r.oid = g.objid and r.rulename = '_RETURN'
  ) as n
),
-- Schema and owner of an object, or of the relation it belongs to.
placed as (
  select g.*, l.space, l.owner
  from gone as g
  cross join lateral (
    select c.relnamespace as space, c.relowner as owner
    from pg_class as c
    where c.oid = case g.classid
      when 'pg_class'::regclass then g.objid
      when 'pg_constraint'::regclass
        then (select k.conrelid from pg_constraint as k where k.oid = g.objid)
      when 'pg_attrdef'::regclass
        then (select a.adrelid from pg_attrdef as a where a.oid = g.objid)
      when 'pg_policy'::regclass
        then (select p.polrelid from pg_policy as p where p.oid = g.objid)
      when 'pg_rewrite'::regclass
        then (select r.ev_class from pg_rewrite as r where r.oid = g.objid)
    end
    union all
    select p.pronamespace, p.proowner
    from pg_proc as p
    where p.oid = case g.classid
      when 'pg_proc'::regclass then g.objid
      -- A user's trigger on one of our tables is recognised by its function.
      when 'pg_trigger'::regclass
        then (select t.tgfoid from pg_trigger as t where t.oid = g.objid)
    end
    union all
    select t.typnamespace, t.typowner
    from pg_type as t
    where g.classid = 'pg_type'::regclass and t.oid = g.objid
  ) as l
  where not exists (select from ours as o where o.classid = g.classid and o.objid = g.objid)
)
select pg_describe_object(p.classid, p.objid, p.objsubid)
from placed as p
join pg_namespace as n on n.oid = p.space
where n.nspname not in ('trunkline', 'trunkline_internal') and n.nspname !~ '^pg_(?!temp)'
  -- The user's own objects may be in the schema of a profile too.
  and not (p.owner = to_regrole('trunkline_owner')
    and exists (select from profiles as f where f.oid = p.space))
  -- Leave out what another entry already covers: the rule of a view, the default of a dropped
  -- column, triggers that PostgreSQL creates for a foreign key or copies to partitions.
  and not (p.classid = 'pg_rewrite'::regclass
    and exists (select from pg_rewrite as r where r.oid = p.objid and r.rulename = '_RETURN'))
  and not (p.classid = 'pg_trigger'::regclass
    and exists (select from pg_trigger as t
      where t.oid = p.objid and (t.tgisinternal or t.tgparentid <> 0)))
  and not (p.classid = 'pg_class'::regclass and p.objsubid > 0
    and exists (select from placed as w
      where w.classid = p.classid and w.objid = p.objid and w.objsubid = 0))
  and not (p.classid = 'pg_type'::regclass
    and exists (select from pg_type as t
      where t.oid = p.objid and (t.typrelid <> 0 or t.typelem <> 0)))
group by 1
order by 1
"""
_PROFILES: Final[LiteralString] = """
select format('profile in schema %I', n.nspname)
from pg_class as c
join pg_namespace as n on n.oid = c.relnamespace
where c.relname = 'trunkline_profile_steps' and c.relkind = 'r'
order by 1
"""


def dependants(connection: Connection) -> list[str]:
    """Describe the user's objects that depend on ours, profiles last.

    PostgreSQL records no dependencies for function bodies stored as text, so these are not found.
    """
    connection.execute("set local search_path = pg_catalog")
    return [name for query in (_DEPENDANTS, _PROFILES) for (name,) in connection.execute(query)]
