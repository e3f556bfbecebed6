-- Returns which of these jobs match a filter, newest first, at most p_limit.
-- Reads only. Intended plan: one index look-up for each id in each table; finished from the day of the oldest id on.
-- Guarded by tests/plans.
create or replace function trunkline_internal.match_ids(
  p_filter trunkline_internal.job_filter,
  p_ids uuid[],
  p_limit integer,
  p_scope text
)
returns trunkline_internal.job_matches
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_acknowledged boolean := p_filter.acknowledged;
  v_correlation_id text := p_filter.correlation_id;
  v_created_before timestamptz := coalesce(p_filter.created_before, 'infinity');
  v_created_from timestamptz := coalesce(p_filter.created_from, '-infinity');
  v_error text := p_filter.error;
  v_error_group text := p_filter.error_group;
  v_finished_before timestamptz := p_filter.finished_before;
  v_finished_from timestamptz := p_filter.finished_from;
  v_matches trunkline_internal.job_matches;
  v_queue text := p_filter.queue;
  v_since timestamptz;
  v_states text[] := p_filter.states;
  v_tag text := p_filter.tag;
  v_task text := p_filter.task;
  v_tenant text := p_filter.tenant;
  v_unique_key text := p_filter.unique_key;
begin
  select trunkline_internal.id_time(p_id => i.id) - interval '1 minute'
  into v_since
  from unnest(p_ids) as i (id)
  order by i.id
  limit 1;
  select
    coalesce(array_agg(m.job_id order by m.job_id desc), '{}'),
    coalesce(array_agg(m.state order by m.job_id desc), '{}')
  into v_matches.job_ids, v_matches.states
  from (
    select j.job_id, j.state
    from trunkline_internal.all_jobs as j
    where j.job_id = any(p_ids)
      and j.prune_by >= v_since
      and j.state = any(v_states)
      and (p_scope is null or j.tenant = p_scope)
      and (v_task is null or j.task = v_task)
      and (v_queue is null or j.queue = v_queue)
      and (v_tenant is null or j.tenant = v_tenant)
      and (v_unique_key is null or j.unique_key = v_unique_key)
      and (v_correlation_id is null or j.correlation_id = v_correlation_id)
      and (v_tag is null or v_tag = any(j.tags))
      and (v_error is null or strpos(lower(trunkline_internal.error_text(p_error => j.last_error)), v_error) > 0)
      and (v_error_group is null or j.error_group = v_error_group)
      and (v_acknowledged is null or (j.acknowledged_at is not null) = v_acknowledged)
      and j.created_at >= v_created_from
      and j.created_at < v_created_before
      and (v_finished_from is null or j.finished_at >= v_finished_from)
      and (v_finished_before is null or j.finished_at < v_finished_before)
    order by j.job_id desc
    limit p_limit
  ) as m;
  return v_matches;
end;
$$;
comment on function trunkline_internal.match_ids(trunkline_internal.job_filter, uuid[], integer, text) is 'Returns which of these jobs match a filter, newest first, at most p_limit.';
