-- Makes those of these jobs that are suspended ready again, ahead of new jobs of their priority; returns how many.
-- blocked | scheduled -> ready (T21) with a new sequence number. Locks its rows of waiting in id order, after the lock of what
-- the jobs waited for. Without p_wait it skips locked rows: their transactions end the jobs, or the duty sweep_steps resumes them.
create or replace function trunkline_internal.resume_jobs(p_jobs uuid[], p_cause text, p_wait boolean default true)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_jobs uuid[];
  v_now timestamptz;
  v_sequences bigint[];
begin
  if p_wait then
    v_jobs := array(
      select w.job_id
      from trunkline_internal.waiting as w
      where w.job_id = any(p_jobs) and w.state in ('blocked', 'scheduled') and w.reason = 'suspended'
      order by w.job_id
      for update of w
    );
  else
    v_jobs := array(
      select w.job_id
      from trunkline_internal.waiting as w
      where w.job_id = any(p_jobs) and w.state in ('blocked', 'scheduled') and w.reason = 'suspended'
      order by w.job_id
      for update of w skip locked
    );
  end if;
  if cardinality(v_jobs) = 0 then
    return 0;
  end if;
  v_now := trunkline.clock();
  v_sequences := array(select nextval('trunkline_internal.job_sequence') from unnest(v_jobs));
  update trunkline_internal.waiting as w
  set state = 'ready', reason = 'resumed', sequence = v_sequences[width_bucket(w.job_id, v_jobs)], run_at = v_now
  where w.job_id = any(v_jobs);
  insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, actor, detail)
  select
    v_now, w.job_id, w.attempt, 'resumed', 'ready', w.task, w.queue, w.tenant, session_user,
    jsonb_build_object('cause', p_cause)
  from trunkline_internal.waiting as w
  where w.job_id = any(v_jobs);
  perform trunkline_internal.open_buckets(p_jobs => v_jobs);
  perform trunkline_internal.wake_sleepers(p_queues => array(
    select distinct w.queue from trunkline_internal.waiting as w where w.job_id = any(v_jobs)
  ));
  perform trunkline_internal.notify_followers(p_ids => v_jobs);
  return cardinality(v_jobs);
end;
$$;
comment on function trunkline_internal.resume_jobs(uuid[], text, boolean) is 'Makes those of these jobs that are suspended ready again, ahead of new jobs of their priority; returns how many.';
