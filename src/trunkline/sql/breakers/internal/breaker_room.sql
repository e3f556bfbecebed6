-- Returns how many jobs a breaker admits now: null for no bound, 0 for none, 1 for a probe.
-- A half-open breaker admits no job while its probe runs. A probe that ended without a result (handed back, deferred or
-- cancelled) makes way for the next. State and probe are read in one snapshot: this function and its callers are stable.
create or replace function trunkline_internal.breaker_room(p_bucket bigint, p_now timestamptz)
returns integer
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_room integer;
begin
  select case b.state
    when 'open' then (b.probe_at <= p_now)::integer
    when 'half_open' then (not trunkline_internal.holder_is_live(p_holder => b.probe_job, p_now => p_now))::integer
  end
  into v_room
  from trunkline_internal.breakers as b
  where b.bucket = p_bucket;
  return v_room;
end;
$$;
comment on function trunkline_internal.breaker_room(bigint, timestamptz) is 'Returns how many jobs a breaker admits now: null for no bound, 0 for none, 1 for a probe.';
