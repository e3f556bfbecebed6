-- Returns when a breaker admits its next probe, as far as time alone decides; infinity while a probe runs, whose end is announced.
create or replace function trunkline_internal.breaker_opens_at(p_bucket bigint, p_now timestamptz)
returns timestamptz
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_breaker trunkline_internal.breakers;
begin
  select b.* into v_breaker from trunkline_internal.breakers as b where b.bucket = p_bucket;
  return case
    when v_breaker.state = 'open' and v_breaker.probe_at > p_now then v_breaker.probe_at
    when v_breaker.state = 'half_open'
      and trunkline_internal.holder_is_live(p_holder => v_breaker.probe_job, p_now => p_now) then 'infinity'::timestamptz
  end;
end;
$$;
comment on function trunkline_internal.breaker_opens_at(bigint, timestamptz) is 'Returns when a breaker admits its next probe, as far as time alone decides; infinity while a probe runs, whose end is announced.';
