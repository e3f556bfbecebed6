-- Enqueues a finished job, whose row the caller has locked, again as a new job that refers to the old one.
-- none -> ready. Until the new job has ended, further calls return it, even if they run at the same time.
create or replace function trunkline_internal.rerun(p_old trunkline_internal.finished)
returns trunkline.enqueued
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_answer trunkline.enqueued;
  v_made uuid;
begin
  -- A separate statement, so that it sees the commit of an earlier retry that this one waited for.
  select (e.detail ->> 'new_job')::uuid into v_made
  from trunkline_internal.events as e
  where e.job_id = p_old.job_id and e.kind = 'retried' and e.at >= p_old.finished_at
  order by e.at desc
  limit 1;
  if v_made is not null then
    v_answer := trunkline_internal.live_state(p_job => v_made);
    if v_answer.job_id is not null then
      return v_answer;
    end if;
  end if;
  v_answer := trunkline.enqueue(
    p_task => p_old.task,
    p_payload => coalesce(p_old.payload, (
      select b.body
      from trunkline_internal.bodies as b
      where b.job_id = p_old.job_id and b.kind = 'payload' and b.day = p_old.payload_day
    )),
    p_queue => p_old.queue,
    p_priority => p_old.priority,
    p_tenant => p_old.tenant,
    p_unique_key => p_old.unique_key,
    p_correlation_id => p_old.correlation_id,
    p_max_attempts => p_old.max_attempts,
    p_tags => p_old.tags
  );
  if v_answer.created then
    update trunkline_internal.waiting as w set retry_of = p_old.job_id where w.job_id = v_answer.job_id;
  end if;
  perform trunkline_internal.record_event(
    p_at => trunkline.clock(), p_job => p_old.job_id, p_attempt => p_old.attempt, p_kind => 'retried',
    p_to_state => p_old.state, p_task => p_old.task, p_queue => p_old.queue, p_tenant => p_old.tenant,
    p_worker => null, p_detail => jsonb_build_object('new_job', v_answer.job_id)
  );
  return v_answer;
end;
$$;
comment on function trunkline_internal.rerun(trunkline_internal.finished) is 'Enqueues a finished job, whose row the caller has locked, again as a new job that refers to the old one.';
