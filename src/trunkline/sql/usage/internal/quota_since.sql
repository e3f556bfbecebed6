-- Returns the first hour since 1970 that a limit's quota counts: of its rolling window, or of the calendar period.
-- An hour of a rolling window counts until all of it is past.
create or replace function trunkline_internal.quota_since(p_limit trunkline_internal.limits, p_now timestamptz)
returns bigint
language sql
stable
as $$
  select case
    when (p_limit).quota_period is not null
      then pg_catalog.floor(extract(epoch from pg_catalog.date_trunc((p_limit).quota_period, p_now, 'UTC')) / 3600)::bigint
    else pg_catalog.floor((extract(epoch from p_now) - extract(epoch from (p_limit).quota_window)) / 3600)::bigint
  end
$$;
comment on function trunkline_internal.quota_since(trunkline_internal.limits, timestamptz) is 'Returns the first hour since 1970 that a limit''s quota counts: of its rolling window, or of the calendar period.';
