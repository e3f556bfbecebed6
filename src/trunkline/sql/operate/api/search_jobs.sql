-- Returns a page of jobs that match a filter, newest first, and the cursor of the next page.
-- The filter is an object of: state (one or a list), task, queue, tenant, tag, correlation_id, unique_key, error (part of the
-- type or message of the last error, in any case), error_group, acknowledged, created_from, created_before, finished_from,
-- finished_before (a dead letter finishes when it dies) and job_ids. Each is optional, and all of them must match.
-- One call reads at most the newest 20,000 jobs of each table, or of a tag, correlation id or error group. So a page may be
-- short or empty although older jobs match: next is null only after the last page. Read-only, in one snapshot.
create or replace function trunkline.search_jobs(
  p_filter jsonb default '{}',
  p_limit integer default 100,
  p_cursor text default null
)
returns trunkline.found_jobs
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_matches trunkline_internal.job_matches;
  v_page trunkline.found_jobs;
  v_since timestamptz;
begin
  perform trunkline_internal.check_bulk_limit(p_limit => p_limit, p_most => 1000);
  v_matches := trunkline_internal.match_jobs(
    p_filter => trunkline_internal.read_filter(p_filter => p_filter), p_limit => p_limit,
    p_before => trunkline_internal.read_cursor(p_cursor => p_cursor), p_scope => trunkline.tenant_scope()
  );
  v_since := trunkline_internal.id_time(p_id => v_matches.job_ids[cardinality(v_matches.job_ids)]) - interval '1 minute';
  v_page.jobs := array(
    select row(
      -- <job shape: listed_job of j>
      j.job_id, j.state, j.task, j.queue, j.priority, j.tenant, j.attempt, j.failures, j.max_attempts, j.deferrals,
      j.created_at, j.run_at, j.claimed_at, j.heartbeat_at, j.lease_expires_at, j.cancel_requested_at, j.finished_at,
      j.worker, j.progress, j.phase, j.message, j.reason, j.unique_key, j.correlation_id, j.retry_of, j.tags, j.last_error,
      j.acknowledged_at, j.expires_at, j.error_group, j.workflow_id
      -- </job>
    )::trunkline.listed_job
    from trunkline_internal.all_jobs as j
    where j.job_id = any(v_matches.job_ids) and j.prune_by >= v_since
    order by j.job_id desc
  );
  v_page.next := trunkline_internal.cursor_of(p_before => v_matches.next);
  return v_page;
end;
$$;
comment on function trunkline.search_jobs(jsonb, integer, text) is 'Returns a page of jobs that match a filter, newest first, and the cursor of the next page.';
