-- Returns true if a duty that started then, and runs that often, is due.
create or replace function trunkline_internal.is_due(p_started_at timestamptz, p_every interval, p_now timestamptz)
returns boolean
language sql
stable
as $$
  -- A start in the future means that the clock was set back. The duty does not wait until the clock has caught up.
  select p_started_at is null or p_started_at <= p_now - p_every or p_started_at > p_now
$$;
comment on function trunkline_internal.is_due(timestamptz, interval, timestamptz) is 'Returns true if a duty that started then, and runs that often, is due.';
