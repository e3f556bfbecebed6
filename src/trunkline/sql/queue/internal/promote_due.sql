-- Makes due jobs ready, earliest first, up to a limit; returns how many, up to which due time it read, and their queues.
-- scheduled -> ready with a new sequence number. Locks the rows that it moves and skips locked ones.
-- Called by claim (bounded, from a kept position) and by the duty promote (from the start).
create or replace function trunkline_internal.promote_due(
  p_now timestamptz,
  p_from timestamptz,
  p_limit integer,
  out promoted integer,
  out covered timestamptz,
  out queues text[]
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_has_buckets boolean;
  v_jobs uuid[];
  v_sequences bigint[];
begin
  -- Locking assigns the transaction id before the first number is drawn. The numbers are drawn in the order of due times,
  -- then sorted by job id for the lookup in the update. The update is a separate statement, so that it sees each row as it
  -- was locked, even if the row changed after the first statement began.
  with due as materialized (
    select w.job_id, w.run_at, w.queue, w.bucket
    from trunkline_internal.waiting as w
    where w.state = 'scheduled' and w.run_at >= p_from and w.run_at <= p_now
    order by w.run_at
    limit p_limit
    for update of w skip locked
  ),
  numbered as materialized (
    select d.job_id, d.run_at, d.queue, d.bucket, nextval('trunkline_internal.job_sequence') as sequence from due as d
  )
  select
    count(*)::integer, max(n.run_at), array_agg(n.job_id order by n.job_id), array_agg(n.sequence order by n.job_id),
    array_agg(distinct n.queue), bool_or(n.bucket is not null)
  into promoted, covered, v_jobs, v_sequences, queues, v_has_buckets
  from numbered as n;
  if promoted < p_limit then
    covered := p_now;
  end if;
  if promoted > 0 then
    update trunkline_internal.waiting as w
    set state = 'ready', sequence = v_sequences[width_bucket(w.job_id, v_jobs)], reason = null
    where w.job_id = any(v_jobs);
    if exists (select from trunkline_internal.followed) then
      perform trunkline_internal.notify_followers(p_ids => v_jobs);
    end if;
    if v_has_buckets then
      perform trunkline_internal.open_buckets(p_jobs => v_jobs);
    end if;
    insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, actor)
    select p_now, w.job_id, w.attempt, 'promoted', 'ready', w.task, w.queue, w.tenant, session_user
    from trunkline_internal.waiting as w
    where w.job_id = any(v_jobs)
      and exists (select from trunkline_internal.tasks as t where t.task = w.task and t.audit);
  end if;
end;
$$;
comment on function trunkline_internal.promote_due(timestamptz, timestamptz, integer) is 'Makes due jobs ready, earliest first, up to a limit; returns how many, up to which due time it read, and their queues.';
