-- Returns the most requests, tokens and units that a limit can ever allow at once; null means no bound.
-- A part of zero is a provider that is switched off for now. Jobs wait for it, so it is no bound here.
create or replace function trunkline_internal.most_at_once(p_limit trunkline_internal.limits)
returns trunkline_internal.amounts
language sql
immutable
parallel safe
as $$
  select row(
    least(
      nullif((p_limit).requests_per_minute, 0),
      nullif((p_limit).requests_per_hour, 0),
      case when (p_limit).quota_unit = 'requests' then nullif(pg_catalog.floor((p_limit).quota * (p_limit).quota_buffer), 0)::bigint end
    ),
    least(
      nullif((p_limit).tokens_per_minute, 0),
      nullif((p_limit).tokens_per_hour, 0),
      case when (p_limit).quota_unit = 'tokens' then nullif(pg_catalog.floor((p_limit).quota * (p_limit).quota_buffer), 0)::bigint end
    ),
    case
      when (p_limit).quota_unit in ('requests', 'tokens') then null
      else nullif(pg_catalog.floor((p_limit).quota * (p_limit).quota_buffer), 0)::bigint
    end
  )::trunkline_internal.amounts
$$;
comment on function trunkline_internal.most_at_once(trunkline_internal.limits) is 'Returns the most requests, tokens and units that a limit can ever allow at once; null means no bound.';
