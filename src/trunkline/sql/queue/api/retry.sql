-- Runs an ended job again: a dead letter under its own id with new attempts, a finished job as a new job that refers to the old one.
-- dead -> ready; completed | cancelled: none -> ready for the new job. A dead letter takes its unique key again; if another
-- job holds the key, the retry is refused and the detail names that job. Until the job created by a retry has ended,
-- further retries of the same finished job return it, even if they run at the same time.
-- Locks: the dead or the finished row, then the rows that enqueue locks.
create or replace function trunkline.retry(p_job uuid)
returns trunkline.enqueued
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_dead trunkline_internal.dead%rowtype;
  v_old trunkline_internal.finished%rowtype;
  v_answer trunkline.enqueued;
  v_made uuid;
  v_scope text := trunkline.tenant_scope();
  v_state text;
begin
  perform trunkline_internal.require_read_committed();
  -- Several rounds, because a job that ends between two of these statements would be found by neither.
  for v_round in 1..3 loop
    delete from trunkline_internal.dead as d
    where d.job_id = p_job and (v_scope is null or d.tenant = v_scope)
    returning d.* into v_dead;
    if found then
      return trunkline_internal.replay(p_dead => v_dead);
    end if;
    select f.* into v_old
    from trunkline_internal.finished as f
    where f.job_id = p_job
      and f.finished_at >= trunkline_internal.id_time(p_id => p_job) - interval '1 minute'
      and (v_scope is null or f.tenant = v_scope)
    for update of f;
    exit when found;
    v_state := trunkline_internal.visible_live_state(p_job => p_job, p_scope => v_scope);
    exit when v_state is not null;
  end loop;
  if v_old.job_id is null then
    perform trunkline_internal.refuse_state(
      p_job => p_job, p_state => v_state, p_allowed => array['dead', 'completed', 'cancelled']
    );
  end if;
  -- A separate statement, so that it sees the commit of an earlier retry that this one waited for.
  select (e.detail ->> 'new_job')::uuid into v_made
  from trunkline_internal.events as e
  where e.job_id = p_job and e.kind = 'retried' and e.at >= v_old.finished_at
  order by e.at desc
  limit 1;
  if v_made is not null then
    v_answer := trunkline_internal.live_state(p_job => v_made);
    if v_answer.job_id is not null then
      return v_answer;
    end if;
  end if;
  v_answer := trunkline.enqueue(
    p_task => v_old.task,
    p_payload => coalesce(v_old.payload, (
      select b.body
      from trunkline_internal.bodies as b
      where b.job_id = p_job and b.kind = 'payload' and b.day = v_old.payload_day
    )),
    p_queue => v_old.queue,
    p_priority => v_old.priority,
    p_tenant => v_old.tenant,
    p_unique_key => v_old.unique_key,
    p_correlation_id => v_old.correlation_id,
    p_max_attempts => v_old.max_attempts,
    p_tags => v_old.tags
  );
  if v_answer.created then
    update trunkline_internal.waiting as w set retry_of = p_job where w.job_id = v_answer.job_id;
  end if;
  perform trunkline_internal.record_event(
    p_at => trunkline.clock(), p_job => p_job, p_attempt => v_old.attempt, p_kind => 'retried',
    p_to_state => v_old.state, p_task => v_old.task, p_queue => v_old.queue, p_tenant => v_old.tenant,
    p_worker => null, p_detail => jsonb_build_object('new_job', v_answer.job_id)
  );
  return v_answer;
end;
$$;
comment on function trunkline.retry(uuid) is 'Runs an ended job again: a dead letter under its own id with new attempts, a finished job as a new job that refers to the old one.';
