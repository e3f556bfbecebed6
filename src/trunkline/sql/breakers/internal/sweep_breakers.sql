-- Removes failures that no breaker counts any more and breakers long closed, at most p_limit of each; returns how many rows it changed.
-- First counts the failures that recovery could not, because it never waits.
create or replace function trunkline_internal.sweep_breakers(p_limit integer, p_now timestamptz)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_changed integer := 0;
  v_buckets bigint[];
  v_rows integer;
begin
  v_buckets := trunkline_internal.lock_breakers(
    p_buckets => array(
      select f.bucket
      from (
        select distinct f.bucket from trunkline_internal.breaker_failures as f where f.at > p_now - interval '1 minute' limit p_limit
      ) as f
      where not exists (select from trunkline_internal.breakers as b where b.bucket = f.bucket and b.state <> 'closed')
    ),
    p_wait => false
  );
  if cardinality(v_buckets) > 0 then
    v_changed := trunkline_internal.open_breakers(
      p_buckets => v_buckets,
      p_limits => array(
        select (
          select n.limit_id from trunkline_internal.bucket_names as n where n.bucket = g.bucket order by n.limit_id desc limit 1
        )
        from unnest(v_buckets) with ordinality as g (bucket, place)
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
  where b.bucket = any(array(
    select b.bucket
    from trunkline_internal.breakers as b
    where b.state = 'closed' and b.changed_at < p_now - interval '1 day'
    limit p_limit
    for update skip locked
  ));
  get diagnostics v_rows = row_count;
  return v_changed + v_rows;
end;
$$;
comment on function trunkline_internal.sweep_breakers(integer, timestamptz) is 'Removes failures that no breaker counts any more and breakers long closed, at most p_limit of each; returns how many rows it changed.';
