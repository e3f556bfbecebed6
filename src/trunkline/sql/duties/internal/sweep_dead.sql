-- Removes dead letters whose acknowledgement is older than their retention, with their steps, at most p_limit; returns how many.
-- dead -> none.
create or replace function trunkline_internal.sweep_dead(p_now timestamptz, p_limit integer)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_gone uuid[];
  v_retention interval := trunkline_internal.setting(p_name => 'dead_retention')::interval;
begin
  with gone as (
    delete from trunkline_internal.dead as d
    where d.ctid = any(array(
      select o.ctid
      from trunkline_internal.dead as o
      where o.acknowledged_at <= p_now - v_retention
      order by o.job_id
      limit p_limit
      for update of o skip locked
    ))
    returning d.job_id, d.payload_day
  ),
  unbodied as (
    delete from trunkline_internal.bodies as b
    using gone as g
    where g.payload_day is not null and b.job_id = g.job_id and b.kind = 'payload' and b.day = g.payload_day
  )
  select coalesce(array_agg(g.job_id), '{}') into v_gone from gone as g;
  perform trunkline_internal.drop_job_steps(p_jobs => v_gone);
  return cardinality(v_gone);
end;
$$;
comment on function trunkline_internal.sweep_dead(timestamptz, integer) is 'Removes dead letters whose acknowledgement is older than their retention, with their steps, at most p_limit; returns how many.';
