-- Records ended attempts that may have called their provider late, and sends the caller a notice for each task and limit.
-- A claim's charge counts in the window that begins with the claim. If a handler calls its provider later, through its own
-- client, the provider sees the call in a later window. The engine cannot see that call, so it uses elapsed time. An
-- attempt is late if it ended more than a quarter of the limit's shortest window after its claim, without a call to
-- acquire or settle_job. A settlement after the whole window excuses nothing: settle_job has counted it, and the notice is
-- sent here. Limits without a window (concurrency, quotas) have no late calls.
-- Callers pass attempts that ran for 15 seconds or more, a quarter of the shortest possible window (a minute).
create or replace function trunkline_internal.note_late(p_ended trunkline_internal.costly_attempt[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set client_min_messages = notice
as $$
declare
  v_late record;
begin
  for v_late in
    with ended as (
      select
        e.job_id, e.attempt, e.task, e.tenant, e.cost_requests, e.cost_tokens, e.cost_units, e.claimed_at, i.bucket,
        trunkline_internal.limit_of(p_bucket => i.bucket, p_limit => i.limit_id) as limit_id
      from unnest(p_ended) as e
      cross join lateral unnest(e.limit_ids, e.bucket_ids) as i (limit_id, bucket)
    ),
    booked as (
      insert into trunkline_internal.usage (
        at, job_id, attempt, bucket, limit_id, task, tenant, requests, tokens, units, cost, late
      )
      select
        p_now, e.job_id, e.attempt, e.bucket, e.limit_id, e.task, e.tenant,
        -- As in record_estimates: limits in requests alone are not booked.
        case when e.cost_tokens > 0 or e.cost_units > 0 then e.cost_requests else 0 end, e.cost_tokens, e.cost_units, 0, true
      from ended as e
      join trunkline_internal.limits as l on l.limit_id = e.limit_id
      where e.claimed_at < p_now - trunkline_internal.shortest_window(p_limit => l) / 4
      order by e.job_id, e.bucket
      on conflict (job_id, attempt, bucket) where grant_id is null do nothing
      returning job_id, attempt, limit_id, task
    )
    select b.task, l.name, count(*) as attempts, max(p_now - e.claimed_at) as longest
    from (
      select b.job_id, b.attempt, b.limit_id, b.task from booked as b
      union all
      select s.job_id, s.attempt, s.limit_id, s.task
      from ended as e
      join trunkline_internal.usage as s on s.job_id = e.job_id and s.attempt = e.attempt and s.bucket = e.bucket
      where s.grant_id is null and s.late
    ) as b
    join trunkline_internal.limits as l on l.limit_id = b.limit_id
    join unnest(p_ended) as e on e.job_id = b.job_id and e.attempt = b.attempt
    group by b.task, l.name
    order by b.task, l.name
  loop
    raise notice using
      errcode = '01TL0',
      message = 'an attempt ended long after its charge, without a grant or timely settlement: a late call may have exceeded the limit',
      detail = jsonb_build_object(
        'task', v_late.task, 'limit', v_late.name, 'attempts', v_late.attempts,
        'seconds', floor(extract(epoch from v_late.longest))
      ),
      hint = 'Call trunkline.acquire right before each call to the provider, or trunkline.settle_job right after it.';
  end loop;
end;
$$;
comment on function trunkline_internal.note_late(trunkline_internal.costly_attempt[], timestamptz) is 'Records ended attempts that may have called their provider late, and sends the caller a notice for each task and limit.';
