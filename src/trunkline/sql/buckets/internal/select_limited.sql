-- Finds limited jobs that may start now, and locks them and their buckets.
-- Waits for no lock: buckets and rows that another transaction holds are skipped. The lock of a bucket is an advisory lock,
-- because a row lock would be written to the log. It is taken in a separate statement, because rows read before it may be
-- old: otherwise two claims used a capacity of one.
-- With p_eager, buckets with far more room than p_limit needs are not locked yet: the caller locks them once it knows its
-- charges (share_buckets, lock_wide_buckets). Otherwise claims of one limit would run one after the other, from their scan
-- to their commit, which cost four workers two fifths of their speed. The result's column locking is how they are locked.
-- Scans the buckets that are not known to be spent, in the order of their numbers, part by part, until there are enough
-- jobs: with a thousand keys few are needed, and reading all of them was most of the claim. Within a part higher lanes go
-- first, whatever their buckets; within a lane buckets in order, each by sequence.
-- Lanes of a bucket with much traffic are scanned from a cursor. Without it, under an old snapshot every claim would read
-- the dead index entries of all earlier jobs: see next_cursor.
create or replace function trunkline_internal.select_limited(
  p_queues text[],
  p_lanes smallint[],
  p_limit integer,
  p_tasks text[],
  p_scope text,
  p_now timestamptz,
  p_snapshot pg_snapshot,
  p_eager boolean
)
returns trunkline_internal.candidates
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  -- The first part has at least so many buckets, so that jobs of different buckets are ordered by their lanes. A claim of
  -- many jobs reads more.
  c_fewest_buckets constant integer := 100;
  c_fewest_of_one_lane constant integer := 16;
  c_most_buckets constant integer := 200;
  c_asked constant integer := 20;
  c_rounds constant integer := 10;
  v_after bigint;
  v_amounts boolean;
  v_begin bigint;
  v_certain boolean;
  v_fair bigint[];
  v_fair_limits integer[];
  v_fewest integer := case when cardinality(p_lanes) > 1 then c_fewest_buckets else c_fewest_of_one_lane end;
  v_found trunkline_internal.candidates;
  v_free boolean;
  v_buckets bigint[];
  v_heads uuid[];
  v_held bigint[];
  v_jobs trunkline_internal.candidates;
  v_last bigint;
  v_left trunkline_internal.room[];
  v_limits integer[];
  v_locking text;
  v_looked integer := 0;
  v_most integer;
  v_open_limits integer[];
  v_part integer;
  v_places jsonb[];
  v_plain boolean;
  v_rows integer;
  v_several boolean;
  v_slots bigint[];
  v_taken bigint[];
  v_tried integer := 0;
  v_trying bigint[];
  v_trying_limits integer[];
  v_used integer := 0;
  v_wanted integer := p_limit;
  v_wrapped boolean := false;
begin
  -- A few to spare: one more bucket costs a hundredth of a second part. If buckets had few jobs each, many may have none.
  select t.after, t.after, least(c_most_buckets, greatest(v_fewest, t.buckets * 9 / 8)), t.buckets * 9 / 8 >= c_most_buckets
  into v_after, v_begin, v_part, v_certain
  from trunkline_internal.begin_scan(p_limit => p_limit) as t;
  loop
    select n.buckets, n.limits, n.fair, n.places, n.listed, n.last, n.wrapped, n.locking, n.amounts, n.plain
    into v_buckets, v_limits, v_fair, v_places, v_rows, v_after, v_wrapped, v_locking, v_amounts, v_plain
    from trunkline_internal.next_buckets(
      p_queues => p_queues, p_lanes => p_lanes, p_limit => p_limit, p_now => p_now, p_snapshot => p_snapshot, p_eager => p_eager,
      p_begin => v_begin, p_after => v_after, p_wrapped => v_wrapped, p_part => v_part, p_certain => v_certain
    ) as n;
    exit when v_rows = 0;
    v_looked := v_looked + v_rows;
    v_held := null;
    v_found := null;
    if v_locking <> 'exclusive' then
      if v_rows > 1 then
        select array_agg(g.bucket), array_agg(g.limit_id), array_agg(g.place)
        into v_buckets, v_limits, v_places
        from (
          select g.bucket, g.limit_id, g.place
          from (
            -- A bucket has a row for each of its queues, and more if several transactions opened it at once.
            select distinct on (g.bucket) g.bucket, g.limit_id, g.place
            from unnest(v_buckets, v_limits, v_places) as g (bucket, limit_id, place)
          ) as g
          order by g.bucket <= v_begin, g.bucket
        ) as g;
      end if;
      v_found := trunkline_internal.lock_heads(
        p_buckets => v_buckets, p_limits => v_limits, p_slots => null, p_places => v_places, p_sums => v_amounts,
        p_queues => p_queues, p_lanes => p_lanes, p_limit => v_wanted, p_tasks => p_tasks, p_scope => p_scope, p_snapshot => p_snapshot,
        p_now => p_now
      );
      v_found.locking := v_locking;
      v_jobs := trunkline_internal.add_candidates(p_found => v_jobs, p_more => v_found);
    else
      select
        array_agg(g.bucket), array_agg(g.limit_id),
        array_agg(g.bucket) filter (where g.fair), array_agg(g.limit_id) filter (where g.fair)
      into v_held, v_limits, v_fair, v_fair_limits
      from (
        select g.bucket, g.limit_id, coalesce(g.bucket = any(v_fair), false) as fair
        from (
          select distinct g.bucket, g.limit_id from unnest(v_buckets, v_limits) as g (bucket, limit_id)
        ) as g
        where trunkline_internal.try_lock_bucket(p_bucket => g.bucket)
        order by g.bucket <= v_begin, g.bucket
      ) as g;
    end if;
    if v_held is not null then
      v_trying := v_held;
      v_trying_limits := v_limits;
      -- If all of them moved to the lanes of their other limits, or were set aside, those behind them are next.
      for v_round in 1..c_rounds loop
        if v_plain then
          select g.buckets, g.limits, g.slots, g.places, g.rooms, cardinality(p_lanes) = 1
          into v_buckets, v_open_limits, v_slots, v_places, v_left, v_free
          from trunkline_internal.free_slots(
            p_buckets => v_trying, p_limits => v_trying_limits, p_wanted => v_wanted, p_now => p_now
          ) as g;
        else
          select
            array_agg(g.bucket), array_agg((g.allowed).limit_id), array_agg(g.slots), array_agg((g.state).place),
            array_agg(row(
              g.bucket, g.requests, g.tokens, g.units, g.low_units, g.slots,
              (g.allowed).quota_unit, (g.allowed).quota_low_below * 2, g.living
            )::trunkline_internal.room),
            -- With a single lane, the slot count already bounds the result.
            bool_and(num_nonnulls(g.requests, g.tokens, g.units) = 0 and (cardinality(p_lanes) = 1 or coalesce(g.slots >= v_wanted, true)))
          into v_buckets, v_open_limits, v_slots, v_places, v_left, v_free
          from trunkline_internal.bucket_room(
            p_buckets => v_trying, p_limits => v_trying_limits, p_now => p_now, p_wanted => v_wanted
          ) as g
          where coalesce(g.slots, 1) > 0
            and coalesce(g.requests, 1) > 0
            and coalesce(g.tokens, 1) > 0
            and coalesce(g.units, 1) > 0
            and g.paused_until is null
            and (g.allowed).share_group is null;
        end if;
        v_found := trunkline_internal.lock_heads(
          p_buckets => v_buckets, p_limits => v_open_limits, p_slots => v_slots, p_places => v_places, p_sums => v_amounts,
          p_queues => p_queues, p_lanes => p_lanes, p_limit => v_wanted, p_tasks => p_tasks, p_scope => p_scope, p_snapshot => p_snapshot,
          p_now => p_now
        );
        v_heads := v_found.jobs;
        if not v_free then
          v_found := trunkline_internal.fit_heads(p_found => v_found, p_left => v_left);
          -- Heads that can never start would hold up everything behind them. Checked only if no head can start, and for
          -- a few of them first.
          if v_found.tids is null and v_heads is not null and v_round < c_rounds
            and trunkline_internal.set_aside(p_jobs => v_heads[1:c_asked], p_now => p_now) > 0
          then
            perform trunkline_internal.set_aside(p_jobs => v_heads[c_asked + 1:], p_now => p_now);
            continue;
          end if;
        end if;
        if v_fair is not null then
          v_found := trunkline_internal.add_candidates(p_found => v_found, p_more => trunkline_internal.select_fairly(
            p_queues => p_queues, p_lanes => p_lanes, p_limit => v_wanted, p_tasks => p_tasks, p_scope => p_scope,
            p_now => p_now, p_buckets => v_fair, p_limits => v_fair_limits, p_snapshot => p_snapshot
          ));
        end if;
        -- If the charges are unknown, there may be jobs with several limits.
        v_several := v_found.charges is null and exists (
          select
          from unnest(v_found.tids) as f (tid)
          join trunkline_internal.waiting as w on w.ctid = f.tid
          where cardinality(w.bucket_ids) > 1
        );
        if v_found.tids is not null and v_several then
          v_found := trunkline_internal.fit_all_buckets(p_found => v_found, p_lanes => p_lanes, p_now => p_now);
          continue when v_found.tids is null and v_found.moved;
        end if;
        -- Heads that do not fit hide the jobs of other buckets if they are as many as the claim wants: a claim of one found
        -- nothing until they fitted. Their buckets are left out, so no job overtakes another of its bucket.
        exit when v_found.tids is not null or coalesce(cardinality(v_heads), 0) < v_wanted;
        select array_agg(t.bucket), array_agg(t.limit_id)
        into v_trying, v_trying_limits
        from unnest(v_trying, v_trying_limits) as t (bucket, limit_id)
        where t.bucket <> all(array(select w.bucket from trunkline_internal.waiting as w where w.job_id = any(v_heads)));
        exit when v_trying is null;
      end loop;
      v_found.locking := 'exclusive';
      v_found.others := 0;
      v_found.rooms := v_left;
      v_jobs := trunkline_internal.add_candidates(p_found => v_jobs, p_more => v_found);
    end if;
    -- Without buckets that another transaction holds.
    v_taken := case when v_locking = 'exclusive' then v_held else v_buckets end;
    v_used := v_used + coalesce(cardinality(v_taken), 0);
    v_wanted := p_limit - coalesce(cardinality(v_jobs.tids), 0);
    if v_wanted <= 0 then
      select c.bucket into v_last from unnest(v_found.charges) as c order by c.bucket <= v_begin desc, c.bucket desc limit 1;
      -- Without the buckets of the last part that were not needed.
      perform trunkline_internal.end_scan(
        p_begin => v_begin, p_last => coalesce(v_last, v_after),
        p_buckets => v_used - coalesce(cardinality(v_taken) - array_position(v_taken, v_last), 0), p_jobs => p_limit
      );
      exit;
    end if;
    exit when v_rows < v_part;
    -- Buckets without jobs do not count: after a burst of keys that come once there are very many.
    v_tried := v_tried + case
      when v_certain or (v_found.charges is null and v_found.tids is not null) then v_rows
      else coalesce(cardinality(v_found.charges), 0)
    end;
    v_certain := v_certain or 2 * v_tried < v_looked;
    -- A claim that found nothing scans further, because its worker would go to sleep.
    v_most := case when v_jobs.tids is null then 5 * c_most_buckets else c_most_buckets end;
    if v_tried >= v_most then
      if v_jobs.tids is not null then
        perform trunkline_internal.end_scan(
          p_begin => v_begin, p_last => v_after, p_buckets => v_used, p_jobs => p_limit - v_wanted
        );
        -- The buckets that follow may have more jobs.
        perform trunkline_internal.wake_sleepers(p_queues => p_queues);
      end if;
      exit;
    end if;
    -- As many as the rest seems to need, because each part costs a millisecond, and few to spare, because a bucket that is
    -- locked and not needed costs as much as one that is.
    v_part := least(c_most_buckets, 4 + v_looked * v_wanted * 17 / (16 * (p_limit - v_wanted + 1)));
  end loop;
  return v_jobs;
end;
$$;
comment on function trunkline_internal.select_limited(text[], smallint[], integer, text[], text, timestamptz, pg_snapshot, boolean) is 'Finds limited jobs that may start now, and locks them and their buckets.';
