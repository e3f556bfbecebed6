-- Changes the priority of the next waiting jobs that match a filter, at most p_limit in one transaction, newest first; within a call the oldest goes first.
-- ready -> ready with a new sequence number; scheduled and blocked jobs keep their state. Call it with the returned cursor until
-- next is null. Outcomes: reprioritised, unchanged, and started if the job does not wait any more. A filter without a field
-- besides state needs p_all. A job that already has the priority is not locked. Locks rows of waiting in id order.
create or replace function trunkline.reprioritise_jobs(
  p_filter jsonb,
  p_priority integer,
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
  c_states constant text[] := array['ready', 'scheduled', 'blocked'];
  v_jobs uuid[];
  v_matches trunkline_internal.job_matches;
  v_now timestamptz := trunkline.clock();
  v_scope text := trunkline.tenant_scope();
  v_unchanged integer;
begin
  perform trunkline_internal.require_read_committed();
  perform trunkline_internal.check_bulk_limit(p_limit => p_limit, p_most => 10000);
  if p_priority is null or p_priority not between -50 and 49 then
    perform trunkline_internal.refuse(
      p_name => 'priority_out_of_range',
      p_detail => jsonb_build_object('priority', p_priority, 'minimum', -50, 'maximum', 49)
    );
  end if;
  v_matches := trunkline_internal.match_jobs(
    p_filter => trunkline_internal.bulk_filter(p_filter => p_filter, p_all => p_all, p_default => c_states, p_allowed => c_states),
    p_limit => p_limit, p_before => trunkline_internal.read_cursor(p_cursor => p_cursor), p_scope => v_scope
  );
  select count(*)::integer
  into v_unchanged
  from trunkline_internal.waiting as w
  where w.job_id = any(v_matches.job_ids) and (w.lane >> 1) = p_priority;
  v_jobs := array(
    select w.job_id
    from trunkline_internal.waiting as w
    where w.job_id = any(v_matches.job_ids) and (v_scope is null or w.tenant = v_scope) and (w.lane >> 1) <> p_priority
    order by w.job_id
    for update of w
  );
  insert into trunkline_internal.lanes (queue, lane)
  select distinct w.queue, (p_priority * 2)::smallint
  from trunkline_internal.waiting as w
  where w.job_id = any(v_jobs)
    and not exists (select from trunkline_internal.lanes as l where l.queue = w.queue and l.lane = p_priority * 2);
  perform pg_current_xact_id();
  insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, actor, detail)
  select
    v_now, w.job_id, w.attempt, 'reprioritised', w.state, w.task, w.queue, w.tenant, session_user,
    jsonb_build_object('from', w.lane >> 1, 'to', p_priority)
  from trunkline_internal.waiting as w
  where w.job_id = any(v_jobs);
  with numbers as materialized (
    select n.job_id, nextval('trunkline_internal.job_sequence') as sequence
    from (select j.job_id from unnest(v_jobs) as j (job_id) order by j.job_id) as n
  ),
  moved as (
    update trunkline_internal.waiting as w
    set lane = p_priority * 2, sequence = case when w.state = 'ready' then n.sequence end
    from numbers as n
    where w.job_id = n.job_id
  )
  -- The sequence number of a job that is set aside is in this table.
  update trunkline_internal.set_aside as a set sequence = n.sequence from numbers as n where a.job_id = n.job_id;
  return trunkline_internal.end_bulk(
    p_action => 'reprioritise_jobs', p_filter => p_filter, p_matches => v_matches,
    p_outcomes => jsonb_build_object(
      'reprioritised', cardinality(v_jobs), 'unchanged', v_unchanged,
      'started', cardinality(v_matches.job_ids) - cardinality(v_jobs) - v_unchanged
    ),
    p_changed => v_jobs, p_change => jsonb_build_object('priority', p_priority)
  );
end;
$$;
comment on function trunkline.reprioritise_jobs(jsonb, integer, integer, text, boolean) is 'Changes the priority of the next waiting jobs that match a filter, at most p_limit in one transaction, newest first; within a call the oldest goes first.';
