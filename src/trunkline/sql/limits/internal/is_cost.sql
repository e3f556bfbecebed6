-- Returns whether a document is a cost: requests, tokens and units as whole numbers, nothing else.
-- 1.0 is refused: it could not be cast to bigint later.
create or replace function trunkline_internal.is_cost(p_cost jsonb)
returns boolean
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if pg_column_size(p_cost) > 10000 or jsonb_typeof(p_cost) <> 'object' or p_cost - array['requests', 'tokens', 'units'] <> '{}'::jsonb then
    return false;
  end if;
  return not exists (
    select
    from jsonb_each(p_cost) as c
    where case
      when jsonb_typeof(c.value) <> 'number' then true
      else (c.value #>> '{}')::numeric not between 0 and 1000000000000 or (c.value #>> '{}') !~ '^[0-9]+$'
    end
  );
end;
$$;
comment on function trunkline_internal.is_cost(jsonb) is 'Returns whether a document is a cost: requests, tokens and units as whole numbers, nothing else.';
