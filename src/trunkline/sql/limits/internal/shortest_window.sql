-- Returns the shortest window in which a limit counts requests or tokens; null if it has none (concurrency, quotas).
create or replace function trunkline_internal.shortest_window(p_limit trunkline_internal.limits)
returns interval
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when num_nonnulls((p_limit).requests_per_minute, (p_limit).tokens_per_minute) > 0 then interval '1 minute'
    when num_nonnulls((p_limit).requests_per_hour, (p_limit).tokens_per_hour) > 0 then interval '1 hour'
  end
$$;
comment on function trunkline_internal.shortest_window(trunkline_internal.limits) is 'Returns the shortest window in which a limit counts requests or tokens; null if it has none (concurrency, quotas).';
