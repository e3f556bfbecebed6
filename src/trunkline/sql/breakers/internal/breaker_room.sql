-- Tells what a breaker lets through now: null, no bound; 0, nothing; 1, one job that tries whether it works again.
-- Half-open, nobody else starts while its probe runs. One that runs no more and has said nothing (it was handed back,
-- put off or cancelled) leaves the place to the next. State and probe are looked at in one moment: this is stable, and so
-- is whoever calls it.
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
comment on function trunkline_internal.breaker_room(bigint, timestamptz) is 'Tells what a breaker lets through now: null, no bound; 0, nothing; 1, one job that tries whether it works again.';
