-- Merges the rows of each bucket and hour into one, and removes hours that no quota counts; returns how many rows it removed.
-- Each claim adds a row, so that claims do not wait for each other; the sums stay the same for concurrent readers. Reads only
-- buckets that were charged in this hour or the last, and of those one day, because it runs every few seconds. Hours that
-- are too old are removed in the first seconds of an hour. An hour in the future, after the clock was set back, becomes
-- this one.
create or replace function trunkline_internal.merge_quota_hours(p_limit integer, p_now timestamptz)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  c_many constant integer := 100;
  -- Clocks read a moment apart are no step.
  v_ahead bigint := floor(extract(epoch from p_now + interval '2 seconds') / 3600)::bigint;
  v_hour bigint := floor(extract(epoch from p_now) / 3600)::bigint;
  v_removed integer;
  v_rows integer;
begin
  with many as materialized (
    select q.bucket, q.hour
    from (select distinct s.bucket from trunkline_internal.bucket_states as s where s.spent_hour >= v_hour - 1) as s
    cross join lateral (
      select q.bucket, q.hour
      from trunkline_internal.quota_hours as q
      where q.bucket = s.bucket and q.hour >= v_hour - 25
      group by q.bucket, q.hour
      having count(*) > case when q.hour < v_hour then 1 else c_many end or q.hour > v_ahead
    ) as q
    limit p_limit
  ),
  removed as (
    delete from trunkline_internal.quota_hours as q
    using many as m
    where q.bucket = m.bucket and q.hour = m.hour
    returning q.bucket, q.hour, q.amount
  ),
  gathered as (
    insert into trunkline_internal.quota_hours (bucket, hour, amount)
    select r.bucket, case when r.hour > v_ahead then v_hour else r.hour end, sum(r.amount)::bigint
    from removed as r
    group by 1, 2
  )
  select count(*)::integer into v_removed from removed;
  if extract(epoch from p_now) - v_hour * 3600 < 15 then
    delete from trunkline_internal.quota_hours as q
    where q.ctid = any(array(
      select o.ctid
      from trunkline_internal.quota_hours as o
      where o.hour < floor(extract(epoch from p_now - interval '367 days') / 3600)
      limit p_limit
    ));
    get diagnostics v_rows = row_count;
    v_removed := v_removed + v_rows;
  end if;
  return v_removed;
end;
$$;
comment on function trunkline_internal.merge_quota_hours(integer, timestamptz) is 'Merges the rows of each bucket and hour into one, and removes hours that no quota counts; returns how many rows it removed.';
