-- Adds ledger rows of ended transactions to their daily sums, once each, and drops rows older than 35 days; returns how many rows it changed.
create or replace function trunkline_internal.roll_usage(p_limit integer, p_now timestamptz)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_below xid8;
  v_changed integer;
  v_from xid8;
  v_rows integer;
begin
  perform from trunkline_internal.usage_roll as r for update skip locked;
  if not found then
    return 0;
  end if;
  -- Rows restored from another server are translated in large batches, because nothing is added to the sums meanwhile.
  v_rows := trunkline_internal.adopt_usage(p_limit => 100 * p_limit);
  if v_rows > 0 then
    return v_rows;
  end if;
  select r.rolled_below into v_from from trunkline_internal.usage_roll as r;
  v_below := pg_snapshot_xmin(pg_current_snapshot());
  -- At most p_limit, but whole transactions: the bound lies between two transactions.
  select s.xid into v_below
  from trunkline_internal.usage as s
  where s.xid >= v_from and s.xid < v_below
  order by s.xid
  offset p_limit
  limit 1;
  v_below := coalesce(v_below, pg_snapshot_xmin(pg_current_snapshot()));
  insert into trunkline_internal.usage_days as d (day, limit_id, task, tenant, calls, requests, tokens, units, cost, late)
  select
    (s.at at time zone 'UTC')::date, s.limit_id, coalesce(s.task, ''), coalesce(s.tenant, ''),
    count(*) filter (where s.requests + s.tokens + s.units + s.cost > 0),
    sum(s.requests)::bigint, sum(s.tokens)::bigint, sum(s.units)::bigint, sum(s.cost), count(*) filter (where s.late)
  from trunkline_internal.usage as s
  where s.xid >= v_from and s.xid < v_below and (s.requests + s.tokens + s.units + s.cost > 0 or s.late)
  group by 1, 2, 3, 4
  on conflict (day, limit_id, task, tenant) do update
  set
    calls = d.calls + excluded.calls,
    requests = d.requests + excluded.requests,
    tokens = d.tokens + excluded.tokens,
    units = d.units + excluded.units,
    cost = d.cost + excluded.cost,
    late = d.late + excluded.late;
  get diagnostics v_changed = row_count;
  update trunkline_internal.usage_roll as r set rolled_below = v_below where r.rolled_below < v_below;
  delete from trunkline_internal.usage as s
  where s.ctid = any(array(
    select o.ctid
    from trunkline_internal.usage as o
    where o.at < p_now - interval '35 days' and o.xid < v_below
    limit p_limit
  ));
  get diagnostics v_rows = row_count;
  return v_changed + v_rows;
end;
$$;
comment on function trunkline_internal.roll_usage(integer, timestamptz) is 'Adds ledger rows of ended transactions to their daily sums, once each, and drops rows older than 35 days; returns how many rows it changed.';
