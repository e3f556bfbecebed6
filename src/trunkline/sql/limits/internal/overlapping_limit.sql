-- Returns a name with keys that can produce the same filled-in name as a new name with keys; null if there is none.
-- Both would count in one place, and a tenant of one could pause a tenant of the other. The names that tasks use count like
-- limits, except those of p_task, whose names are being replaced; p_others are the new ones. Names without keys never
-- overlap: a limit of a filled-in name replaces the one with keys for that name. A name that is in use already is not
-- checked again: limits cannot be removed, so an overlap from an earlier release must not keep anybody from changing them.
-- Values contain no slash, so the names are compared part by part. Two parts with keys overlap if one's beginning starts
-- with the other's, and the same holds for their ends: the values can contain the rest.
create or replace function trunkline_internal.overlapping_limit(p_name text, p_task text default null, p_others text[] default '{}')
returns text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_parts text[] := string_to_array(regexp_replace(p_name, '[{][^{}]+[}]', '{k}', 'g'), '/');
begin
  if not trunkline_internal.lock_limit_templates(p_names => array[p_name]) then
    return null;
  end if;
  return (
    select l.name
    from (
      select l.name from trunkline_internal.limits as l
      union
      select n.name
      from trunkline_internal.tasks as t
      cross join lateral unnest(t.limits) as n (name)
      where t.task is distinct from p_task
      union
      select n.name from unnest(p_others) as n (name)
    ) as l
    cross join lateral string_to_array(regexp_replace(l.name, '[{][^{}]+[}]', '{k}', 'g'), '/') as o (parts)
    where l.name ~ '[{][^{}]+[}]'
      and l.name <> p_name
      and cardinality(o.parts) = cardinality(v_parts)
      and not exists (
        select
        from unnest(v_parts, o.parts) as p (ours, theirs)
        cross join lateral (
          select
            split_part(p.ours, '{k}', 1) as our_begin, split_part(p.ours, '{k}', -1) as our_end,
            split_part(p.theirs, '{k}', 1) as their_begin, split_part(p.theirs, '{k}', -1) as their_end
        ) as e
        where not case
          when strpos(p.ours, '{k}') = 0 then trunkline_internal.split_limit_name(p_template => p.theirs, p_name => p.ours) is not null
          when strpos(p.theirs, '{k}') = 0 then trunkline_internal.split_limit_name(p_template => p.ours, p_name => p.theirs) is not null
          else (starts_with(e.our_begin, e.their_begin) or starts_with(e.their_begin, e.our_begin))
            and (
              starts_with(reverse(e.our_end), reverse(e.their_end)) or starts_with(reverse(e.their_end), reverse(e.our_end))
            )
        end
      )
    order by l.name collate "C"
    limit 1
  );
end;
$$;
comment on function trunkline_internal.overlapping_limit(text, text, text[]) is 'Returns a name with keys that can produce the same filled-in name as a new name with keys; null if there is none.';
