-- Translates the transaction ids stored with buckets after a restore into another server; returns the number of rows changed.
-- Ids start low on a new server, and a bound from the old server lies above them. Adjustments written here would look as
-- if they had been counted already, and adjustments from the old server would never be counted. Adjustments that the old
-- server had counted are deleted. The others get the id of this transaction, and bounds restart at the oldest running
-- transaction. Without ids from another server, it reads three small tables and changes nothing. Claims wait for the
-- table lock meanwhile.
create or replace function trunkline_internal.adopt_buckets()
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_changed integer := 0;
  v_end xid8 := pg_snapshot_xmax(pg_current_snapshot());
  v_newest xid8;
  v_oldest xid8;
  v_own xid8;
  v_rows integer;
begin
  select u.xid
  into v_newest
  from (
    select s.adjusted_below as xid from trunkline_internal.bucket_states as s where s.adjusted_below >= v_end
    union all
    select s.served from trunkline_internal.bucket_states as s where s.served >= v_end
    union all
    select c.xid from trunkline_internal.bucket_adjustments as c where c.xid >= v_end
    union all
    select g.sealed_at_xid from trunkline_internal.bucket_queues as g where g.sealed_at_xid >= v_end
  ) as u
  order by u.xid desc
  limit 1;
  if not trunkline_internal.is_ahead(p_xid => v_newest) then
    return 0;
  end if;
  lock table trunkline_internal.bucket_states in exclusive mode;
  v_own := pg_current_xact_id();
  v_end := pg_snapshot_xmax(pg_current_snapshot());
  v_oldest := pg_snapshot_xmin(pg_current_snapshot());
  -- A row below the bound has been counted, unless a transaction of this server wrote it after the restore. Only in that
  -- case does the id in the row equal the id of the transaction that stored it.
  delete from trunkline_internal.bucket_adjustments as c
  using (
    select distinct on (s.bucket) s.bucket, s.adjusted_below from trunkline_internal.bucket_states as s order by s.bucket, s.revision desc
  ) as s
  where s.bucket = c.bucket and s.adjusted_below >= v_end and c.xid < s.adjusted_below and (c.xid >= v_end or c.xmin <> c.xid::xid);
  get diagnostics v_rows = row_count;
  v_changed := v_changed + v_rows;
  update trunkline_internal.bucket_adjustments as c
  set xid = v_own
  where c.xid >= v_end
    or (
      c.xid < v_oldest
      and exists (select from trunkline_internal.bucket_states as s where s.bucket = c.bucket and s.adjusted_below >= v_end)
    );
  get diagnostics v_rows = row_count;
  v_changed := v_changed + v_rows;
  -- The order in which keys of a share group were served is kept. The position of the lane scan is not, which costs one scan.
  update trunkline_internal.bucket_states as s
  set
    adjusted_below = case when s.adjusted_below >= v_end then v_oldest else s.adjusted_below end,
    served = case when s.served is not null then least(o.turn::text::xid8, v_oldest) end,
    place = null
  from (
    select o.bucket, o.revision, row_number() over (order by o.served nulls last) as turn from trunkline_internal.bucket_states as o
  ) as o
  where o.bucket = s.bucket and o.revision = s.revision;
  get diagnostics v_rows = row_count;
  v_changed := v_changed + v_rows;
  update trunkline_internal.bucket_queues as g set closing = false, sealed_at_xid = null where g.sealed_at_xid >= v_end;
  get diagnostics v_rows = row_count;
  return v_changed + v_rows;
end;
$$;
comment on function trunkline_internal.adopt_buckets() is 'Translates the transaction ids stored with buckets after a restore into another server; returns the number of rows changed.';
