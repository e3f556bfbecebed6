-- Returns the first of a job's limits that never gives as much at once as the job costs; nulls if it fits all of them.
-- unit is the place of the cost in p_need: 1 requests, 2 tokens, 3 units. limit_id is the one that the job carries.
create or replace function trunkline_internal.exceeded_limit(
  p_need bigint[],
  out bucket bigint,
  out limit_id integer,
  out unit integer,
  out cost bigint,
  out most bigint
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_most bigint[];
begin
  for v_place in 4..coalesce(cardinality(p_need), 0) by 2 loop
    select trunkline_internal.most_at_once(p_limit => l)
    into v_most
    from trunkline_internal.limits as l
    where l.limit_id = trunkline_internal.limit_of(p_bucket => p_need[v_place + 1], p_limit => p_need[v_place]::integer);
    for v_unit in 1..3 loop
      if p_need[v_unit] > v_most[v_unit] then
        bucket := p_need[v_place + 1];
        limit_id := p_need[v_place]::integer;
        unit := v_unit;
        cost := p_need[v_unit];
        most := v_most[v_unit];
        return;
      end if;
    end loop;
  end loop;
end;
$$;
comment on function trunkline_internal.exceeded_limit(bigint[]) is 'Returns the first of a job''s limits that never gives as much at once as the job costs; nulls if it fits all of them.';
