-- Removes failures that no breaker sees any more and breakers long closed, at most p_limit of each; tells how many rows it changed.
-- Counts first what recovery could not, since it waits for nobody.
create or replace function trunkline_internal.sweep_breakers(p_limit integer, p_now timestamptz)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_changed integer := 0;
  v_gates bigint[];
  v_rows integer;
begin
  v_gates := trunkline_internal.take_breaker_turns(
    p_gates => array(
      select f.gate
      from (
        select distinct f.gate from trunkline_internal.breaker_failures as f where f.at > p_now - interval '1 minute' limit p_limit
      ) as f
      where not exists (select from trunkline_internal.breakers as b where b.gate = f.gate and b.state <> 'closed')
    ),
    p_wait => false
  );
  if cardinality(v_gates) > 0 then
    v_changed := trunkline_internal.open_breakers(
      p_gates => v_gates,
      p_limits => array(
        select (
          select n.limit_id from trunkline_internal.gate_names as n where n.gate = g.gate order by n.limit_id desc limit 1
        )
        from unnest(v_gates) with ordinality as g (gate, place)
        order by g.place
      ),
      p_now => p_now
    );
  end if;
  delete from trunkline_internal.breaker_failures as f
  where f.ctid = any(array(
    select f.ctid
    from trunkline_internal.breaker_failures as f
    where f.at < p_now - coalesce((select max(m.breaker_window) from trunkline_internal.limits as m), interval '0')
    order by f.at
    limit p_limit
  ));
  get diagnostics v_rows = row_count;
  v_changed := v_changed + v_rows;
  delete from trunkline_internal.breakers as b
  where b.gate = any(array(
    select b.gate
    from trunkline_internal.breakers as b
    where b.state = 'closed' and b.changed_at < p_now - interval '1 day'
    limit p_limit
    for update skip locked
  ));
  get diagnostics v_rows = row_count;
  return v_changed + v_rows;
end;
$$;
comment on function trunkline_internal.sweep_breakers(integer, timestamptz) is 'Removes failures that no breaker sees any more and breakers long closed, at most p_limit of each; tells how many rows it changed.';
