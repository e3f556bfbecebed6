-- Marks the next dead letters that match a filter as seen by a person, at most p_limit in one transaction, newest first; their retention time starts then.
-- dead -> dead. Call it with the returned cursor until next is null. Outcomes: acknowledged, unchanged if the dead letter was
-- acknowledged before, and gone if another session was faster. A filter without a field besides state needs p_all. job_ids
-- has those that this call acknowledged. Locks rows of dead in id order.
create or replace function trunkline.acknowledge_jobs(
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
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_acknowledged uuid[];
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
  with acknowledged as (
    update trunkline_internal.dead as d
    set acknowledged_at = v_now, acknowledged_by = session_user
    where d.job_id = any(v_jobs) and d.acknowledged_at is null
    returning d.job_id, d.attempt, d.task, d.queue, d.tenant
  ),
  noted as (
    insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, actor)
    select v_now, a.job_id, a.attempt, 'acknowledged', 'dead', a.task, a.queue, a.tenant, session_user
    from acknowledged as a
  )
  select coalesce(array_agg(a.job_id order by a.job_id desc), '{}') into v_acknowledged from acknowledged as a;
  return trunkline_internal.end_bulk(
    p_action => 'acknowledge_jobs', p_filter => p_filter, p_matches => v_matches,
    p_outcomes => jsonb_build_object(
      'acknowledged', cardinality(v_acknowledged), 'unchanged', cardinality(v_jobs) - cardinality(v_acknowledged),
      'gone', cardinality(v_matches.job_ids) - cardinality(v_jobs)
    ),
    p_changed => v_acknowledged
  );
end;
$$;
comment on function trunkline.acknowledge_jobs(jsonb, integer, text, boolean) is 'Marks the next dead letters that match a filter as seen by a person, at most p_limit in one transaction, newest first; their retention time starts then.';
