-- Returns the keys in braces of limit names, each once.
create or replace function trunkline_internal.limit_keys(p_limits text[])
returns text[]
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select distinct m.found[1]
    from unnest(p_limits) as l (name)
    cross join lateral regexp_matches(l.name, '[{]([^{}]+)[}]', 'g') as m (found)
  );
end;
$$;
comment on function trunkline_internal.limit_keys(text[]) is 'Returns the keys in braces of limit names, each once.';
