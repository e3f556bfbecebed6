-- Returns the delay before the attempt that follows the n-th failure: base x factor^(n-1), jittered, never above the cap.
-- The jitter factor is uniform in [1 - jitter, 1 + jitter] and drawn in each call, so separately for each job.
create or replace function trunkline_internal.backoff(
  p_failures integer,
  p_base interval,
  p_factor double precision,
  p_cap interval,
  p_jitter double precision
)
returns interval
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_base double precision := extract(epoch from p_base)::double precision;
  v_cap double precision := extract(epoch from p_cap)::double precision;
  v_wait double precision;
begin
  if p_failures < 1 then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_failures', 'value', p_failures, 'must_be', 'at least 1')
    );
  end if;
  -- The exponent is bounded to prevent overflow; the cap is reached long before.
  v_wait := least(v_base * power(p_factor, least(p_failures - 1, 60)), v_cap);
  v_wait := v_wait * (1 + p_jitter * (2 * trunkline_internal.draw() - 1));
  return make_interval(secs => least(v_wait, v_cap));
end;
$$;
comment on function trunkline_internal.backoff(integer, interval, double precision, interval, double precision) is 'Returns the delay before the attempt that follows the n-th failure: base x factor^(n-1), jittered, never above the cap.';
