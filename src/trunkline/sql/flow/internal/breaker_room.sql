-- Tells how many jobs the breaker of a gate lets start: null for no bound, 0 while it is open, 1 where a probe may start.
create or replace function trunkline_internal.breaker_room(p_gate bigint, p_now timestamptz)
returns integer
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_breaker trunkline_internal.breakers;
begin
  select b.* into v_breaker from trunkline_internal.breakers as b where b.gate = p_gate;
  return case
    when not found or v_breaker.state = 'closed' then null
    when v_breaker.probe_at > p_now then 0
    when exists (select from trunkline_internal.running as r where r.job_id = v_breaker.probe_job) then 0
    else 1
  end;
end;
$$;
comment on function trunkline_internal.breaker_room(bigint, timestamptz) is 'Tells how many jobs the breaker of a gate lets start: null for no bound, 0 while it is open, 1 where a probe may start.';
