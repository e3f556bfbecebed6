-- Returns whether amounts exceed what a limit can ever allow, so that a job with this cost would wait forever.
create or replace function trunkline_internal.never_fits(
  p_limit trunkline_internal.limits, p_requests bigint, p_tokens bigint, p_units bigint default 0
)
returns boolean
language sql
immutable
as $$
  select coalesce(p_requests > (m.most).requests or p_tokens > (m.most).tokens or p_units > (m.most).units, false)
  from (select trunkline_internal.most_at_once(p_limit => p_limit) as most) as m
$$;
comment on function trunkline_internal.never_fits(trunkline_internal.limits, bigint, bigint, bigint) is 'Returns whether amounts exceed what a limit can ever allow, so that a job with this cost would wait forever.';
