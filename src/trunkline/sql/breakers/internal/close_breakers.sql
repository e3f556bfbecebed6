-- Closes the breakers whose probe is among these completed jobs, and wakes workers that sleep while jobs wait behind them.
-- Locks rows of breakers in the order of the buckets, after those of the jobs. Claims never lock a breaker whose probe runs.
create or replace function trunkline_internal.close_breakers(p_jobs uuid[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_closed bigint[];
begin
  -- Usually there is none. A search for each job would take half a microsecond.
  if not exists (select from trunkline_internal.breakers as b where b.probe_job is not null) then
    return;
  end if;
  with closed as (
    update trunkline_internal.breakers as b
    set
      state = 'closed',
      probe_at = null,
      probe_job = null,
      closed_at = p_now,
      changed_at = p_now,
      changed_by = session_user,
      reason = 'the probe succeeded'
    from (
      select b.bucket
      from trunkline_internal.breakers as b
      where b.probe_job = any(p_jobs) and b.state = 'half_open'
      order by b.bucket
      for update
    ) as p
    where b.bucket = p.bucket
    returning b.bucket
  )
  select array_agg(c.bucket) into v_closed from closed as c;
  if v_closed is not null then
    perform trunkline_internal.wake_buckets(p_buckets => v_closed, p_queues => array[]::text[], p_slots => false, p_elsewhere => true);
  end if;
end;
$$;
comment on function trunkline_internal.close_breakers(uuid[], timestamptz) is 'Closes the breakers whose probe is among these completed jobs, and wakes workers that sleep while jobs wait behind them.';
