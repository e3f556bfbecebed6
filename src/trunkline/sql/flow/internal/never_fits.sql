-- Tells whether an amount is more than a limit ever gives at once, so that whoever asks for it would wait for ever.
-- A limit of zero is a provider switched off for now: it is waited for.
create or replace function trunkline_internal.never_fits(
  p_limit trunkline_internal.limits, p_requests bigint, p_tokens bigint
)
returns boolean
language sql
immutable
as $$
  select coalesce(
    p_requests > nullif((p_limit).requests_per_minute, 0)
    or p_requests > nullif((p_limit).requests_per_hour, 0)
    or p_tokens > nullif((p_limit).tokens_per_minute, 0)
    or p_tokens > nullif((p_limit).tokens_per_hour, 0),
    false
  )
$$;
comment on function trunkline_internal.never_fits(trunkline_internal.limits, bigint, bigint) is 'Tells whether an amount is more than a limit ever gives at once, so that whoever asks for it would wait for ever.';
