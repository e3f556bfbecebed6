-- Ends attempts whose payload, or a result that they read, does not fit their worker's code: deferred while a live worker with another signature serves the task, otherwise dead.
-- running -> scheduled as a deferral (60 s, doubling to 15 minutes, bounded as in snooze) | dead | cancelled if requested.
-- The payload has a field too many or too few. During a rolling deploy, jobs of new code reach old workers and the
-- reverse. The handler did not run, so the charges of the claim are refunded. The key field of each error names the field.
-- An error with the key result is about a recorded result, or one of another job. The handler may have run, so nothing is
-- refunded, and a worker counts as another version if any task has other parameters, another result or other code there.
-- Locks its rows in id order.
create or replace function trunkline.hand_over(
  p_worker text,
  p_jobs uuid[],
  p_attempts integer[],
  p_errors jsonb[] default null
)
returns setof trunkline.handover
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_attempts integer[] := '{}'::integer[];
  v_errors jsonb[];
  v_group record;
  v_jobs uuid[] := '{}'::uuid[];
  v_locked uuid[];
  v_now timestamptz;
begin
  perform trunkline_internal.check_batch(
    p_worker => p_worker, p_jobs => p_jobs, p_attempts => p_attempts, p_others => array[cardinality(p_errors)]
  );
  if pg_column_size(p_errors) > 67108864 then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_errors', 'must_be', 'at most 64 MB', 'bytes', pg_column_size(p_errors))
    );
  end if;
  v_locked := trunkline_internal.lock_running(
    p_worker => p_worker, p_jobs => p_jobs, p_attempts => p_attempts, p_scope => trunkline.tenant_scope()
  );
  v_now := trunkline.clock();
  -- Grouped by reason, because a call of defer_attempts takes only one.
  for v_group in
    select array_agg(f.job_id) as jobs, array_agg(f.attempt) as attempts, f.task, f.field, f.result, f.other
    from (
      select
        r.job_id, r.attempt, r.task, left(a.error ->> 'field', 100) as field, left(a.error ->> 'result', 100) as result,
        trunkline_internal.other_version(
          p_worker => p_worker, p_task => r.task, p_queue => r.queue, p_tenant => r.tenant,
          p_results => coalesce(a.error ? 'result', false), p_now => v_now
        ) as other
      from unnest(p_jobs, p_attempts, p_errors) as a (job_id, attempt, error)
      join trunkline_internal.running as r on r.job_id = a.job_id and r.attempt = a.attempt
      where r.job_id = any(v_locked)
    ) as f
    where f.other is not null
    group by f.task, f.field, f.result, f.other
  loop
    if v_group.result is null then
      perform trunkline_internal.refund_unstarted(p_worker => p_worker, p_jobs => v_group.jobs, p_attempts => v_group.attempts);
    end if;
    return query
    select v.job_id, v.attempt, v.verdict, v.state, v.run_at, v_group.other
    from trunkline_internal.defer_attempts(
      p_worker => p_worker, p_jobs => v_group.jobs, p_attempts => v_group.attempts, p_delays => null,
      p_reason => format(
        '%s does not fit the code of %s; %s has another version of %s',
        coalesce(v_group.result, format('field %s of the payload', coalesce(v_group.field, '?'))),
        left(p_worker, 100), left(v_group.other, 100), left(v_group.task, 100)
      ),
      p_jitter => true, p_immediate => false, p_kind => 'released', p_counts => true
    ) as v;
    v_jobs := v_jobs || v_group.jobs;
    v_attempts := v_attempts || v_group.attempts;
  end loop;
  select array_agg(a.job_id), array_agg(a.attempt), array_agg(a.error)
  into v_jobs, v_attempts, v_errors
  from unnest(p_jobs, p_attempts, p_errors) as a (job_id, attempt, error)
  where not exists (
    select from unnest(v_jobs, v_attempts) as b (job_id, attempt) where b.job_id = a.job_id and b.attempt = a.attempt
  );
  if v_jobs is not null then
    return query
    select v.job_id, v.attempt, v.verdict, v.state, v.run_at, null::text
    from trunkline.fail(
      p_worker => p_worker, p_jobs => v_jobs, p_attempts => v_attempts, p_errors => v_errors,
      p_retryable => array_fill(false, array[cardinality(v_jobs)])
    ) as v;
  end if;
end;
$$;
comment on function trunkline.hand_over(text, uuid[], integer[], jsonb[]) is 'Ends attempts whose payload, or a result that they read, does not fit their worker''s code: deferred while a live worker with another signature serves the task, otherwise dead.';
