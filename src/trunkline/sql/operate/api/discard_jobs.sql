-- Deletes the next dead letters that match a filter permanently, with their steps, at most p_limit in one transaction, newest first.
-- dead -> none. Their history in events stays. Call it with the returned cursor until next is null. Outcomes: discarded, and
-- gone if another session was faster. A filter without a field besides state needs p_all. Locks rows of dead in id order.
create or replace function trunkline.discard_jobs(
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
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_jobs uuid[];
  v_matches trunkline_internal.job_matches;
  v_now timestamptz := trunkline.clock();
  v_scope text := trunkline.tenant_scope();
begin
  perform trunkline_internal.require_read_committed();
  perform trunkline_internal.check_bulk_limit(p_limit => p_limit, p_most => 10000);
  v_matches := trunkline_internal.match_jobs(
    p_filter => trunkline_internal.bulk_filter(
      p_filter => p_filter, p_all => p_all, p_default => array['dead'], p_allowed => array['dead']
    ),
    p_limit => p_limit, p_before => trunkline_internal.read_cursor(p_cursor => p_cursor), p_scope => v_scope
  );
  v_jobs := array(
    select d.job_id
    from trunkline_internal.dead as d
    where d.job_id = any(v_matches.job_ids) and (v_scope is null or d.tenant = v_scope)
    order by d.job_id
    for update of d
  );
  with gone as (
    delete from trunkline_internal.dead as d where d.job_id = any(v_jobs) returning d.*
  ),
  unbodied as (
    delete from trunkline_internal.bodies as b
    using gone as g
    where g.payload_day is not null and b.job_id = g.job_id and b.kind = 'payload' and b.day = g.payload_day
  )
  insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, actor, detail)
  select
    v_now, g.job_id, g.attempt, 'discarded', null, g.task, g.queue, g.tenant, session_user,
    jsonb_build_object('reason', left(p_reason, 500), 'reason_of_death', g.reason)
  from gone as g;
  perform trunkline_internal.drop_job_steps(p_jobs => v_jobs);
  return trunkline_internal.end_bulk(
    p_action => 'discard_jobs', p_filter => p_filter, p_matches => v_matches,
    p_outcomes => jsonb_build_object(
      'discarded', cardinality(v_jobs), 'gone', cardinality(v_matches.job_ids) - cardinality(v_jobs)
    ),
    p_changed => v_jobs, p_reason => p_reason
  );
end;
$$;
comment on function trunkline.discard_jobs(jsonb, text, integer, text, boolean) is 'Deletes the next dead letters that match a filter permanently, with their steps, at most p_limit in one transaction, newest first.';
