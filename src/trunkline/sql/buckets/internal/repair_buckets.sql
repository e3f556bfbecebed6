-- Repairs bucket times that lie in the future after the clock was set back, at most p_limit buckets a run; returns how many rows it changed.
-- p_back is how far the clock went back since the last run, or zero. No limit stays shut for longer than its longest window
-- from now: charges count as of now, a pause lasts an hour at most, breakers and grants last as long as they were meant to.
-- Nothing opens too early: windows start again at the step.
-- A bucket that another transaction holds is left to the next run. Claims that read the clock a moment apart are no step.
create or replace function trunkline_internal.repair_buckets(p_limit integer, p_back interval, p_now timestamptz)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_longest_hold constant interval := interval '1 hour';
  c_slack constant interval := interval '2 seconds';
  v_ahead bigint := floor(extract(epoch from p_now + c_slack))::bigint;
  v_charges trunkline_internal.bucket_charge[] := array[]::trunkline_internal.bucket_charge[];
  v_bucket bigint;
  v_buckets bigint[];
  v_limit integer;
  v_mended integer := 0;
  v_minute bigint := floor(extract(epoch from p_now) / 60)::bigint;
  v_rows integer;
  v_state trunkline_internal.bucket_states;
begin
  v_buckets := array(
    select s.bucket
    from trunkline_internal.bucket_states as s
    where s.paused_until > p_now + case when p_back > interval '0' then interval '0' else c_longest_hold end
      or s.spent_hour > v_ahead / 3600
      or s.charged_at[cardinality(s.charged_at)] > v_ahead
      or s.started_at[cardinality(s.started_at)] > v_ahead / 60
    union all
    -- Claims that share a bucket, and settlements, add adjustments.
    select c.bucket
    from trunkline_internal.bucket_adjustments as c
    where c.at > v_ahead
      and c.xid >= coalesce((
        select s.adjusted_below from trunkline_internal.bucket_states as s where s.bucket = c.bucket order by s.revision desc limit 1
      ), '0'::xid8)
    limit p_limit
  );
  v_buckets := array(
    select g.bucket from (select distinct g.bucket from unnest(v_buckets) as g (bucket) order by g.bucket) as g
    where trunkline_internal.try_lock_bucket(p_bucket => g.bucket)
  );
  foreach v_bucket in array v_buckets loop
    -- A separate statement: rows read before the lock may be old.
    select s.* into v_state from trunkline_internal.bucket_states as s where s.bucket = v_bucket order by s.revision desc limit 1;
    if found then
      if v_state.paused_until is not null then
        v_state.paused_until := least(v_state.paused_until - p_back, p_now + c_longest_hold);
      end if;
      v_state.spent_hour := case when v_state.spent_hour <= v_ahead / 3600 then v_state.spent_hour end;
      select array_agg(b.minute order by b.minute), array_agg(b.starts order by b.minute)
      into v_state.started_at, v_state.started
      from (
        select least(b.minute, v_minute) as minute, sum(b.starts)::bigint as starts
        from unnest(v_state.started_at, v_state.started) as b (minute, starts)
        group by least(b.minute, v_minute)
      ) as b;
      perform trunkline_internal.write_revision(p_bucket => v_bucket, p_state => v_state);
    end if;
    select n.limit_id into v_limit from trunkline_internal.bucket_names as n where n.bucket = v_bucket order by n.limit_id desc limit 1;
    v_limit := trunkline_internal.limit_of(p_bucket => v_bucket, p_limit => v_limit);
    if v_limit is not null then
      v_charges := v_charges || row(v_bucket, v_limit, 0, 0, 0, array[]::uuid[], 0)::trunkline_internal.bucket_charge;
    end if;
    v_mended := v_mended + 1;
  end loop;
  -- An empty charge moves charges in the future to now and computes when there is room.
  if cardinality(v_charges) > 0 then
    perform trunkline_internal.charge_buckets(
      p_charges => v_charges, p_queues => null, p_lanes => null, p_bound => null, p_rooms => null,
      p_snapshot => pg_current_snapshot(), p_now => p_now
    );
    -- No attempt has started, so a probe that is due stays due.
    update trunkline_internal.breakers as b
    set state = 'open', probe_at = p_now
    where b.bucket = any(v_buckets) and b.state = 'half_open' and b.probe_job is null;
  end if;
  update trunkline_internal.breakers as b
  set
    probe_at = p_now + (b.probe_at - b.changed_at),
    opened_at = least(b.opened_at, p_now),
    closed_at = least(b.closed_at, p_now),
    changed_at = p_now
  where b.bucket = any(array(
    select o.bucket from trunkline_internal.breakers as o where o.changed_at > p_now + c_slack order by o.bucket for update skip locked
  ));
  get diagnostics v_rows = row_count;
  v_mended := v_mended + v_rows;
  update trunkline_internal.breaker_failures as f set at = p_now where f.at > p_now + c_slack;
  get diagnostics v_rows = row_count;
  v_mended := v_mended + v_rows;
  -- The second of the charge stays: a refund for a second in the future is not counted.
  update trunkline_internal.grants as g
  set granted_at = p_now, expires_at = p_now + (g.expires_at - g.granted_at)
  where g.expires_at > p_now and g.granted_at > p_now + c_slack and g.job_id is null and g.settled_at is null;
  get diagnostics v_rows = row_count;
  v_mended := v_mended + v_rows;
  if v_mended > 0 then
    perform trunkline_internal.wake_buckets(p_buckets => v_buckets, p_queues => array[]::text[], p_slots => false, p_elsewhere => true);
  end if;
  return v_mended;
end;
$$;
comment on function trunkline_internal.repair_buckets(integer, interval, timestamptz) is 'Repairs bucket times that lie in the future after the clock was set back, at most p_limit buckets a run; returns how many rows it changed.';
