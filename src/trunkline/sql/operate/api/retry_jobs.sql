-- Runs the next jobs that match a filter again, at most p_limit in one transaction, newest first: dead letters under their ids, finished jobs as new ones.
-- dead -> ready; completed | cancelled: none -> ready for the new job. Finished jobs are only run again if the filter names
-- their states. Call it with the returned cursor until next is null; within a call the oldest goes first. Outcomes:
-- replayed, retried, gone if another session was faster, and refusals by their names, such as unique_key_held. A filter
-- without a field besides state needs p_all. job_ids has the dead letters that were replayed and the new jobs.
create or replace function trunkline.retry_jobs(
  p_filter jsonb,
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
  v_matches trunkline_internal.job_matches;
  v_refused integer;
  v_replay record;
  v_rerun record;
  v_scope text := trunkline.tenant_scope();
begin
  perform trunkline_internal.require_read_committed();
  perform trunkline_internal.check_bulk_limit(p_limit => p_limit, p_most => 10000);
  v_matches := trunkline_internal.match_jobs(
    p_filter => trunkline_internal.bulk_filter(
      p_filter => p_filter, p_all => p_all, p_default => array['dead'], p_allowed => array['dead', 'completed', 'cancelled']
    ),
    p_limit => p_limit, p_before => trunkline_internal.read_cursor(p_cursor => p_cursor), p_scope => v_scope
  );
  v_replay := trunkline_internal.replay_dead(
    p_jobs => array(
      select m.job_id from unnest(v_matches.job_ids, v_matches.states) as m (job_id, state) where m.state = 'dead'
    ),
    p_scope => v_scope
  );
  v_rerun := trunkline_internal.rerun_finished(
    p_jobs => array(
      select m.job_id from unnest(v_matches.job_ids, v_matches.states) as m (job_id, state) where m.state <> 'dead'
    ),
    p_scope => v_scope
  );
  select coalesce(sum(r.value::integer), 0)::integer into v_refused from jsonb_each_text(v_rerun.refused) as r;
  return trunkline_internal.end_bulk(
    p_action => 'retry_jobs', p_filter => p_filter, p_matches => v_matches,
    p_outcomes => v_rerun.refused || jsonb_build_object(
      'replayed', cardinality(v_replay.replayed), 'retried', cardinality(v_rerun.made),
      'unique_key_held', cardinality(v_replay.held) + coalesce((v_rerun.refused ->> 'unique_key_held')::integer, 0),
      'gone', cardinality(v_matches.job_ids) - cardinality(v_replay.replayed) - cardinality(v_replay.held)
        - cardinality(v_rerun.made) - v_refused
    ),
    p_changed => v_replay.replayed || v_rerun.made
  );
end;
$$;
comment on function trunkline.retry_jobs(jsonb, integer, text, boolean) is 'Runs the next jobs that match a filter again, at most p_limit in one transaction, newest first: dead letters under their ids, finished jobs as new ones.';
