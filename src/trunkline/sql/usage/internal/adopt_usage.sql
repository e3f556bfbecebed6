-- Translates transaction ids of the usage ledger after a restore into another server, at most p_limit lines; returns the number of lines.
-- Lines that are already in the daily sums get an id below all others; the rest get the id of this transaction. Then the
-- bound restarts at the oldest running transaction. Until then no line is added to the sums. The caller has locked the
-- row of usage_roll.
create or replace function trunkline_internal.adopt_usage(p_limit integer)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  c_counted constant xid8 := '1'::xid8;
  v_below xid8;
  v_changed integer;
  v_end xid8 := pg_snapshot_xmax(pg_current_snapshot());
  v_newest xid8;
  v_oldest xid8;
  v_own xid8;
  v_rows integer;
begin
  select r.rolled_below into strict v_below from trunkline_internal.usage_roll as r;
  select s.xid into v_newest from trunkline_internal.usage as s where s.xid >= v_end order by s.xid desc limit 1;
  if not trunkline_internal.is_ahead(p_xid => greatest(v_newest, v_below)) then
    return 0;
  end if;
  v_own := pg_current_xact_id();
  v_end := pg_snapshot_xmax(pg_current_snapshot());
  v_oldest := pg_snapshot_xmin(pg_current_snapshot());
  -- Lines written on this server since the restore are not in the sums yet: see adopt_buckets.
  update trunkline_internal.usage as s
  set xid = c_counted
  where s.ctid = any(array(
    select o.ctid
    from trunkline_internal.usage as o
    where o.xid >= v_oldest and o.xid < v_below and (o.xid >= v_end or o.xmin <> o.xid::xid)
    limit p_limit
  ));
  get diagnostics v_changed = row_count;
  if v_changed >= p_limit then
    return v_changed;
  end if;
  update trunkline_internal.usage as s
  set xid = v_own
  where s.xid >= v_end or (v_below >= v_end and s.xid > c_counted and s.xid < v_oldest and s.xmin = s.xid::xid);
  get diagnostics v_rows = row_count;
  update trunkline_internal.usage_roll as r set rolled_below = v_oldest where r.rolled_below >= v_end;
  return v_changed + v_rows;
end;
$$;
comment on function trunkline_internal.adopt_usage(integer) is 'Translates transaction ids of the usage ledger after a restore into another server, at most p_limit lines; returns the number of lines.';
