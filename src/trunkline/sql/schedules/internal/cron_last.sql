-- Returns the latest due time up to a moment, given an earlier due time.
-- Called by run_schedule. It bisects the time between, so that a year of missed minutes takes about twenty steps.
create or replace function trunkline_internal.cron_last(p_cron text, p_time_zone text, p_due timestamptz, p_until timestamptz)
returns timestamptz
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_due timestamptz := p_due;
  v_until timestamptz := p_until;
  v_look timestamptz := p_due;
  v_next timestamptz;
begin
  while v_look < v_until loop
    v_next := trunkline_internal.cron_next(p_cron => p_cron, p_time_zone => p_time_zone, p_after => v_look);
    if v_next <= p_until then
      v_due := v_next;
    else
      -- Nothing is due between this moment and p_until.
      v_until := v_look;
    end if;
    exit when v_until - v_due < interval '1 minute';
    -- In seconds, because the length of a day depends on the session's time zone.
    v_look := v_due + make_interval(secs => extract(epoch from v_until - v_due)::double precision / 2);
  end loop;
  return v_due;
end;
$$;
comment on function trunkline_internal.cron_last(text, text, timestamptz, timestamptz) is 'Returns the latest due time up to a moment, given an earlier due time.';
