-- Returns the names of steps that wait for each other in a circle, at most twenty; null if there is no cycle.
-- Removes steps without open dependencies until none is left (Kahn). What remains has a cycle: it is found by following
-- dependencies backwards.
create or replace function trunkline_internal.find_cycle(p_steps trunkline_internal.graph_step[])
returns text[]
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_free integer[];
  v_next integer := 1;
  v_open integer[];
  v_place integer;
  v_seen integer[] := array[]::integer[];
  v_source integer;
begin
  v_open := array(select cardinality(s.after) from unnest(p_steps) as s order by s.place);
  v_free := array(select s.place from unnest(p_steps) as s where cardinality(s.after) = 0);
  while v_next <= cardinality(v_free) loop
    foreach v_place in array (p_steps[v_free[v_next] + 1]).dependants loop
      v_open[v_place + 1] := v_open[v_place + 1] - 1;
      if v_open[v_place + 1] = 0 then
        v_free := v_free || v_place;
      end if;
    end loop;
    v_next := v_next + 1;
  end loop;
  if cardinality(v_free) = cardinality(p_steps) then
    return null;
  end if;
  v_place := array_position(array(select o.open > 0 from unnest(v_open) as o (open)), true) - 1;
  while v_place <> all(v_seen) loop
    v_seen := v_seen || v_place;
    foreach v_source in array (p_steps[v_place + 1]).after loop
      if v_open[v_source + 1] > 0 then
        v_place := v_source;
        exit;
      end if;
    end loop;
  end loop;
  return array(
    select (p_steps[c.place + 1]).name
    from unnest(v_seen[array_position(v_seen, v_place):]) with ordinality as c (place, number)
    order by c.number desc
    limit 20
  );
end;
$$;
comment on function trunkline_internal.find_cycle(trunkline_internal.graph_step[]) is 'Returns the names of steps that wait for each other in a circle, at most twenty; null if there is no cycle.';
