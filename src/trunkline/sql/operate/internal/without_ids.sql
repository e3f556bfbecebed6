-- Returns the ids of the first list that are not in the second one, in ascending order.
create or replace function trunkline_internal.without_ids(p_ids uuid[], p_others uuid[])
returns uuid[]
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select i.id from unnest(p_ids) as i (id)
    except
    select o.id from unnest(p_others) as o (id)
    order by 1
  );
end;
$$;
comment on function trunkline_internal.without_ids(uuid[], uuid[]) is 'Returns the ids of the first list that are not in the second one, in ascending order.';
