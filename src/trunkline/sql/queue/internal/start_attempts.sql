-- Moves locked ready jobs to running under a lease and answers with them, best first, a large payload left out.
-- ready -> running; an id that is running already can only come from outside: that job goes to dead
-- under a new id, so that it cannot stop its queue.
-- p_audited says whether there is any task with an audit trail: the caller learns it without a statement of its own.
-- p_last is the sequence number of the last one in that order; its row carries the position.
-- The clock is read after the rows were locked, so after the transaction has its id: reclaim's
-- position relies on it as claim's does.
create or replace function trunkline_internal.start_attempts(
  p_worker text,
  p_tids tid[],
  p_jobs uuid[],
  p_keyed uuid[],
  p_lease interval,
  p_queues text[],
  p_position jsonb,
  p_last bigint,
  p_audited boolean
)
returns setof trunkline.claimed_job
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := trunkline.clock();
begin
  return query
  with taken as (
    delete from trunkline_internal.waiting as w
    where w.ctid = any(p_tids)
    returning w.*
  ),
  held as (
    insert into trunkline_internal.running (
      job_id, sequence, claimed_at, lease_expires_at, hard_deadline, run_at, created_at,
      deferred_since, attempt, payload_day, failures, crashes, deferrals, max_attempts, lane, audit,
      queue, task, worker, tenant, unique_key, correlation_id, retry_of, tags, payload, last_error
    )
    select
      w.job_id, w.sequence, v_now,
      v_now + least(coalesce(t.lease, p_lease), coalesce(t.hard_limit, 4 * coalesce(t.lease, p_lease))),
      v_now + coalesce(t.hard_limit, 4 * coalesce(t.lease, p_lease)),
      w.run_at, w.created_at, w.deferred_since, w.attempt + 1, w.payload_day, w.failures, w.crashes,
      w.deferrals, w.max_attempts, w.lane, coalesce(t.audit, false), w.queue, w.task, p_worker, w.tenant,
      w.unique_key, w.correlation_id, w.retry_of, w.tags, w.payload, w.last_error
    from taken as w
    left join trunkline_internal.tasks as t on t.task = w.task
    returning
      job_id, sequence, claimed_at, lease_expires_at, hard_deadline, run_at, created_at, attempt, failures,
      deferrals, max_attempts, lane, queue, task, tenant, correlation_id, tags, payload,
      last_error
  )
  select
    h.job_id,
    h.attempt,
    h.task,
    h.queue,
    (h.lane >> 1)::integer,
    h.payload,
    h.tenant,
    h.correlation_id,
    h.tags,
    h.failures::integer,
    h.deferrals,
    h.max_attempts::integer,
    h.created_at,
    h.run_at,
    h.claimed_at,
    h.lease_expires_at,
    h.hard_deadline,
    h.last_error,
    case when h.sequence = p_last then p_position end
  from held as h
  order by array_position(p_queues, h.queue), h.queue, h.lane desc, h.sequence;
  -- What few jobs need is done apart, as in complete.
  if p_keyed is not null then
    delete from trunkline_internal.unique_keys as k
    where k.job_id = any(array(
      select r.job_id
      from trunkline_internal.running as r
      where r.job_id = any(p_keyed)
        and exists (select from trunkline_internal.tasks as t where t.task = r.task and t.unique_until = 'claim')
    ));
  end if;
  if p_audited then
    insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, worker, actor)
    select v_now, r.job_id, r.attempt, 'claimed', 'running', r.task, r.queue, r.tenant, p_worker, session_user
    from trunkline_internal.running as r
    where r.job_id = any(p_jobs) and r.audit;
  end if;
exception
  when unique_violation then
    perform trunkline_internal.bury_collisions(p_tids => p_tids, p_now => v_now);
    if p_position is not null then
      return next row(
        null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
        '{}'::jsonb
      )::trunkline.claimed_job;
    end if;
end;
$$;
comment on function trunkline_internal.start_attempts(text, tid[], uuid[], uuid[], interval, text[], jsonb, bigint, boolean) is 'Moves locked ready jobs to running under a lease and answers with them, best first, a large payload left out.';
