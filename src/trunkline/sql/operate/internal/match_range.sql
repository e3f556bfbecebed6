-- Returns jobs that match a filter, newest first, among the newest p_look rows of each table before an id, at most p_limit.
-- next is null if no older job can match. Otherwise it is the last match of a full page, or the newest of the last rows that
-- were read from each table.
-- The exact bounds of finished_at are tested after p_look rows were read; the search itself only skips whole days. Otherwise
-- it would read a day to its end for a minute that few jobs finished in.
-- Reads only. Intended plan: a merge of index scans, without a sort. Guarded by tests/plans.
create or replace function trunkline_internal.match_range(
  p_filter trunkline_internal.job_filter,
  p_limit integer,
  p_before uuid,
  p_look integer,
  p_scope text
)
returns trunkline_internal.job_matches
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set timezone = 'UTC'
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set enable_sort = off
set plan_cache_mode = force_generic_plan
as $$
declare
  c_slack constant interval := interval '1 second';
  v_acknowledged boolean := p_filter.acknowledged;
  v_created_before timestamptz := coalesce(p_filter.created_before, 'infinity');
  v_created_from timestamptz := coalesce(p_filter.created_from, '-infinity');
  v_error text := p_filter.error;
  v_finished_before timestamptz := p_filter.finished_before;
  v_finished_from timestamptz := p_filter.finished_from;
  v_first_day timestamptz;
  v_has_dead boolean := 'dead' = any(p_filter.states);
  v_has_finished boolean := p_filter.states && array['completed', 'cancelled'];
  v_has_running boolean := 'running' = any(p_filter.states);
  v_has_waiting boolean := p_filter.states && array['ready', 'scheduled', 'blocked'];
  v_high uuid;
  v_last_day timestamptz;
  v_low uuid;
  v_matches trunkline_internal.job_matches;
  v_queue text := p_filter.queue;
  v_states text[] := p_filter.states;
  v_task text := p_filter.task;
  v_tenant text := p_filter.tenant;
  v_unique_key text := p_filter.unique_key;
begin
  -- An id starts with the time of the enqueue, and no job ends before that. The bounds are no nulls, which no index can use.
  v_high := least(
    p_before,
    trunkline_internal.first_id(p_at => p_filter.created_before + c_slack),
    trunkline_internal.first_id(p_at => v_finished_before + c_slack)
  );
  v_low := coalesce(
    trunkline_internal.first_id(p_at => p_filter.created_from - c_slack), '00000000-0000-0000-0000-000000000000'
  );
  v_first_day := date_trunc('day', greatest(trunkline_internal.id_time(p_id => v_low) - interval '1 minute', v_finished_from));
  v_last_day := coalesce(date_trunc('day', v_finished_before) + interval '1 day', 'infinity');
  select
    coalesce(array_agg(m.job_id), '{}'),
    coalesce(array_agg(m.state), '{}')
  into v_matches.job_ids, v_matches.states
  from (
    select j.job_id, j.state
    from (
      (
        select
          w.job_id, w.state, w.task, w.queue, w.tenant, w.unique_key, w.last_error, w.created_at,
          null::timestamptz as finished_at, null::timestamptz as acknowledged_at
        from trunkline_internal.waiting as w
        where v_has_waiting and w.job_id < v_high and w.job_id >= v_low
        order by w.job_id desc
        limit p_look
      )
      union all
      (
        select
          r.job_id, 'running', r.task, r.queue, r.tenant, r.unique_key, r.last_error, r.created_at, null::timestamptz, null::timestamptz
        from trunkline_internal.running as r
        where v_has_running and r.job_id < v_high and r.job_id >= v_low
        order by r.job_id desc
        limit p_look
      )
      union all
      (
        select
          d.job_id, 'dead', d.task, d.queue, d.tenant, d.unique_key, d.last_error, d.created_at, d.died_at, d.acknowledged_at
        from trunkline_internal.dead as d
        where v_has_dead and d.job_id < v_high and d.job_id >= v_low
        order by d.job_id desc
        limit p_look
      )
      union all
      (
        select
          f.job_id, f.state, f.task, f.queue, f.tenant, f.unique_key, f.last_error, f.created_at, f.finished_at, null::timestamptz
        from trunkline_internal.finished as f
        where v_has_finished
          and f.job_id < v_high
          and f.job_id >= v_low
          and f.finished_at >= v_first_day
          and f.finished_at < v_last_day
        order by f.job_id desc
        limit p_look
      )
    ) as j
    where j.state = any(v_states)
      and (p_scope is null or j.tenant = p_scope)
      and (v_task is null or j.task = v_task)
      and (v_queue is null or j.queue = v_queue)
      and (v_tenant is null or j.tenant = v_tenant)
      and (v_unique_key is null or j.unique_key = v_unique_key)
      and (v_error is null or strpos(lower(trunkline_internal.error_text(p_error => j.last_error)), v_error) > 0)
      and (v_acknowledged is null or (j.acknowledged_at is not null) = v_acknowledged)
      and j.created_at >= v_created_from
      and j.created_at < v_created_before
      and (v_finished_from is null or j.finished_at >= v_finished_from)
      and (v_finished_before is null or j.finished_at < v_finished_before)
    order by j.job_id desc
    limit p_limit
  ) as m;
  if cardinality(v_matches.job_ids) = p_limit then
    v_matches.next := v_matches.job_ids[p_limit];
    return v_matches;
  end if;
  select max_id.job_id
  into v_matches.next
  from (
    (
      select w.job_id from trunkline_internal.waiting as w
      where v_has_waiting and w.job_id < v_high and w.job_id >= v_low order by w.job_id desc offset p_look - 1 limit 1
    )
    union all
    (
      select r.job_id from trunkline_internal.running as r
      where v_has_running and r.job_id < v_high and r.job_id >= v_low order by r.job_id desc offset p_look - 1 limit 1
    )
    union all
    (
      select d.job_id from trunkline_internal.dead as d
      where v_has_dead and d.job_id < v_high and d.job_id >= v_low order by d.job_id desc offset p_look - 1 limit 1
    )
    union all
    (
      select f.job_id from trunkline_internal.finished as f
      where v_has_finished
        and f.job_id < v_high
        and f.job_id >= v_low
        and f.finished_at >= v_first_day
        and f.finished_at < v_last_day
      order by f.job_id desc
      offset p_look - 1
      limit 1
    )
  ) as max_id
  order by max_id.job_id desc
  limit 1;
  if v_matches.next is not null then
    select
      coalesce(array_agg(m.job_id order by m.place), '{}'),
      coalesce(array_agg(m.state order by m.place), '{}')
    into v_matches.job_ids, v_matches.states
    from unnest(v_matches.job_ids, v_matches.states) with ordinality as m (job_id, state, place)
    where m.job_id >= v_matches.next;
  end if;
  return v_matches;
end;
$$;
comment on function trunkline_internal.match_range(trunkline_internal.job_filter, integer, uuid, integer, text) is 'Returns jobs that match a filter, newest first, among the newest p_look rows of each table before an id, at most p_limit.';
