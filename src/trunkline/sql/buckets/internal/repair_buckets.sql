-- Mends what a clock that was set back has left in the future, at most p_limit buckets a run; tells how many rows it changed.
-- p_back is how far the clock was seen to go back since the last run, zero where it did not. No limit is shut for longer
-- than its longest span from now: what was given out counts as of now, a hold lasts an hour at most, and what tells when
-- it began (breakers, grants) lasts as long as it was to. Never sooner than it was meant: windows begin again at the step.
-- A bucket that somebody holds is left to the next run. Claims that read the clock a moment before another's are no step.
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
    -- Claims that share a bucket charge it beside its state, and so do settlements.
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
    -- In a statement of its own: what was read before the bucket was held may be old.
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
  -- A charge of nothing: it puts what lies ahead to now, and reckons when there is room.
  if cardinality(v_charges) > 0 then
    perform trunkline_internal.charge_buckets(
      p_charges => v_charges, p_queues => null, p_lanes => null, p_bound => null, p_rooms => null,
      p_snapshot => pg_current_snapshot(), p_now => p_now
    );
    -- Nobody has started: a probe that is due stays so.
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
  -- The second it was charged in stays: what is given back for one that has not come is not counted.
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
comment on function trunkline_internal.repair_buckets(integer, interval, timestamptz) is 'Mends what a clock that was set back has left in the future, at most p_limit buckets a run; tells how many rows it changed.';
