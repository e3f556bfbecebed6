-- Closes a breaker that is open or half-open, whatever its probe reports; returns how many it closed.
-- p_name is a limit or one of its filled-in names; the name of a limit with keys in braces means all of them.
-- Locks the buckets in order, then rows of breakers. Claims skip the buckets meanwhile.
create or replace function trunkline.reset_breaker(p_name text)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before jsonb;
  v_closed bigint[];
  v_buckets bigint[];
  v_now timestamptz := trunkline.clock();
begin
  perform trunkline_internal.require_read_committed();
  v_buckets := array(
    select g.bucket
    from trunkline_internal.breaker_buckets(p_name => p_name) as g
    join trunkline_internal.breakers as b on b.bucket = g.bucket and b.state <> 'closed'
    order by hashint8(g.bucket)
  );
  perform trunkline_internal.lock_bucket(p_bucket => g.bucket) from unnest(v_buckets) as g (bucket);
  with closed as (
    update trunkline_internal.breakers as b
    set
      state = 'closed',
      probe_at = null,
      probe_job = null,
      closed_at = v_now,
      changed_at = v_now,
      changed_by = session_user,
      reason = 'reset'
    from (
      select b.bucket, b.state, b.probe_at, b.reason
      from trunkline_internal.breakers as b
      where b.bucket = any(v_buckets) and b.state <> 'closed'
      order by b.bucket
      for update
    ) as p
    where b.bucket = p.bucket
    returning b.bucket, p.state, p.probe_at, p.reason
  )
  select
    array_agg(c.bucket),
    jsonb_build_object(
      'state', string_agg(distinct c.state, ', '), 'breakers', count(*), 'probe_at', min(c.probe_at),
      'reason', case when count(distinct c.reason) = 1 then min(c.reason) end
    )
  into v_closed, v_before
  from closed as c;
  if v_closed is null then
    return 0;
  end if;
  perform trunkline_internal.log_action(
    p_action => 'reset_breaker', p_kind => 'breaker', p_object => p_name, p_before => v_before,
    p_after => jsonb_build_object('state', 'closed', 'breakers', cardinality(v_closed)), p_tenant => trunkline.tenant_scope()
  );
  -- Attempts and failures from before no longer count.
  update trunkline_internal.bucket_states as s
  set started_at = null, started = null
  where s.bucket = any(v_closed);
  perform trunkline_internal.wake_buckets(p_buckets => v_closed, p_queues => array[]::text[], p_slots => false, p_elsewhere => true);
  return cardinality(v_closed);
end;
$$;
comment on function trunkline.reset_breaker(text) is 'Closes a breaker that is open or half-open, whatever its probe reports; returns how many it closed.';
