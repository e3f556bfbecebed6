-- Cancels the next jobs that match a filter, at most p_limit in one transaction, newest first; waiting ones at once, running ones by a request.
-- ready | scheduled | blocked -> cancelled; running -> running. Call it with the returned cursor until next is null. Jobs that
-- are enqueued meanwhile are not touched, and an interrupted series continues with the last cursor. Outcomes: cancelled,
-- requested, and ended if the job has ended since it was found. A filter without a field besides state needs p_all.
create or replace function trunkline.cancel_jobs(
  p_filter jsonb,
  p_reason text default null,
  p_limit integer default 1000,
  p_cursor text default null,
  p_all boolean default false
)
returns trunkline.bulk_change
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_states constant text[] := array['ready', 'scheduled', 'blocked', 'running'];
  v_cancelled uuid[] := array[]::uuid[];
  v_done uuid[];
  v_left uuid[];
  v_matches trunkline_internal.job_matches;
  v_now timestamptz := trunkline.clock();
  v_requested uuid[] := array[]::uuid[];
  v_scope text := trunkline.tenant_scope();
begin
  perform trunkline_internal.require_read_committed();
  perform trunkline_internal.check_bulk_limit(p_limit => p_limit, p_most => 10000);
  v_matches := trunkline_internal.match_jobs(
    p_filter => trunkline_internal.bulk_filter(p_filter => p_filter, p_all => p_all, p_default => c_states, p_allowed => c_states),
    p_limit => p_limit, p_before => trunkline_internal.read_cursor(p_cursor => p_cursor), p_scope => v_scope
  );
  v_left := v_matches.job_ids;
  -- Several rounds, because a job that is claimed or handed back between two of these statements would be found by neither.
  for v_round in 1..3 loop
    exit when cardinality(v_left) = 0;
    v_done := trunkline_internal.cancel_waiting(p_jobs => v_left, p_reason => p_reason, p_scope => v_scope, p_now => v_now);
    v_cancelled := v_cancelled || v_done;
    v_left := trunkline_internal.without_ids(p_ids => v_left, p_others => v_done);
    v_done := trunkline_internal.cancel_running(p_jobs => v_left, p_reason => p_reason, p_scope => v_scope, p_now => v_now);
    v_requested := v_requested || v_done;
    v_left := trunkline_internal.without_ids(p_ids => v_left, p_others => v_done);
  end loop;
  return trunkline_internal.end_bulk(
    p_action => 'cancel_jobs', p_filter => p_filter, p_matches => v_matches,
    p_outcomes => jsonb_build_object(
      'cancelled', cardinality(v_cancelled), 'requested', cardinality(v_requested), 'ended', cardinality(v_left)
    ),
    p_changed => v_cancelled || v_requested, p_reason => p_reason
  );
end;
$$;
comment on function trunkline.cancel_jobs(jsonb, text, integer, text, boolean) is 'Cancels the next jobs that match a filter, at most p_limit in one transaction, newest first; waiting ones at once, running ones by a request.';
