-- Serialises sessions that add limit names with keys; returns whether one of the names is new.
-- Locks the row of limit_templates until the end of the transaction, before rows of tasks and limits. Known names lock nothing,
-- so that starting workers can register their tasks at the same time.
create or replace function trunkline_internal.lock_limit_templates(p_names text[])
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (
    select
    from unnest(p_names) as n (name)
    where n.name ~ '[{][^{}]+[}]'
      and not exists (select from trunkline_internal.limits as l where l.name = n.name)
      and not exists (select from trunkline_internal.tasks as t where n.name = any (t.limits))
  ) then
    return false;
  end if;
  -- An update and not only a lock: a transaction that reads an old snapshot fails here instead of missing a name.
  update trunkline_internal.limit_templates as t set revision = t.revision + 1;
  return true;
end;
$$;
comment on function trunkline_internal.lock_limit_templates(text[]) is 'Serialises sessions that add limit names with keys; returns whether one of the names is new.';
