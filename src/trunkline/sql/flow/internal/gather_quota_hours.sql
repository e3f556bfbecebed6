-- Puts the rows of hours past together, one for each gate and hour, and forgets those that no quota can see; tells how many it removed.
-- A claim adds a row each time, so that nobody waits for another's; sums stay the same whoever reads meanwhile.
create or replace function trunkline_internal.gather_quota_hours(p_limit integer, p_now timestamptz)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_removed integer;
begin
  with many as (
    select q.gate, q.hour
    from trunkline_internal.quota_hours as q
    group by q.gate, q.hour
    having count(*) > 1 and q.hour < floor(extract(epoch from p_now) / 3600) or count(*) > 100
    limit p_limit
  ),
  removed as (
    delete from trunkline_internal.quota_hours as q
    using many as m
    where (q.gate = m.gate and q.hour = m.hour) or q.hour < floor(extract(epoch from p_now - interval '367 days') / 3600)
    returning q.gate, q.hour, q.amount
  ),
  gathered as (
    insert into trunkline_internal.quota_hours (gate, hour, amount)
    select r.gate, r.hour, sum(r.amount)::bigint
    from removed as r
    where r.hour >= floor(extract(epoch from p_now - interval '367 days') / 3600)
    group by r.gate, r.hour
  )
  select count(*)::integer into v_removed from removed;
  return v_removed;
end;
$$;
comment on function trunkline_internal.gather_quota_hours(integer, timestamptz) is 'Puts the rows of hours past together, one for each gate and hour, and forgets those that no quota can see; tells how many it removed.';
