-- Enqueues the due jobs of one schedule and moves it to its next due time, in one transaction.
-- The caller, run_schedules, has locked the row. Two things ensure that each due time is enqueued once: the row moves in the
-- transaction of the enqueue, and the idempotency key of the job contains the due time. If the schedule was edited after
-- its run for a due time, that run counts for the edited schedule too.
-- A refused enqueue is recorded and skipped. A temporary error (deadlock, lock, resources) or one caused by the caller's
-- session (read-only, row security) leaves the due time for the next call.
-- If the next due time can no longer be computed, for example because the time zone was removed, the schedule is paused
-- with the reason.
create or replace function trunkline_internal.run_schedule(
  p_schedule trunkline_internal.schedules,
  p_now timestamptz,
  p_most integer
)
returns trunkline.schedule_run[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_grace constant interval := interval '60 seconds';
  c_passing constant text[] := '{25,40,42,53,54,55,57,58,P0}'::text[];
  v_due timestamptz := p_schedule.next_run_at;
  v_next timestamptz;
  v_last_run_at timestamptz := p_schedule.last_run_at;
  v_last_job_id uuid := p_schedule.last_job_id;
  v_detail text;
  v_error text;
  v_skipped integer := 0;
  v_answer trunkline.enqueued;
  v_runs trunkline.schedule_run[] := '{}'::trunkline.schedule_run[];
begin
  if p_schedule.missed = 'once' then
    v_next := trunkline_internal.cron_last(
      p_cron => p_schedule.cron, p_time_zone => p_schedule.time_zone, p_due => v_due, p_until => p_now
    );
  elsif p_schedule.missed = 'skip' and v_due < p_now - c_grace then
    v_next := trunkline_internal.cron_next(
      p_cron => p_schedule.cron, p_time_zone => p_schedule.time_zone, p_after => p_now - c_grace - interval '1 microsecond'
    );
  end if;
  if v_next > v_due then
    v_skipped := trunkline_internal.cron_count(
      p_cron => p_schedule.cron, p_time_zone => p_schedule.time_zone, p_due => v_due, p_until => v_next
    );
    v_due := v_next;
  end if;
  while v_due <= p_now and cardinality(v_runs) < p_most loop
    v_next := trunkline_internal.cron_next(
      p_cron => p_schedule.cron, p_time_zone => p_schedule.time_zone, p_after => v_due
    );
    v_error := null;
    begin
      v_answer := trunkline.enqueue(
        p_task => p_schedule.task,
        p_payload => p_schedule.payload,
        p_queue => p_schedule.queue,
        p_priority => p_schedule.priority,
        p_tenant => p_schedule.tenant,
        p_idempotency_key => 'schedule:' || p_schedule.schedule || ':'
          || to_char(v_due at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
        p_tags => array['schedule:' || p_schedule.schedule]
      );
    exception
      when sqlstate 'TL027' then
        get stacked diagnostics v_detail = pg_exception_detail;
        v_answer.job_id := (v_detail::jsonb ->> 'job')::uuid;
      when others then
        v_error := sqlstate || ': ' || sqlerrm;
        v_runs := v_runs || row(p_schedule.schedule, v_due, null, v_error)::trunkline.schedule_run;
        exit when left(sqlstate, 2) = any(c_passing);
    end;
    if v_error is null then
      v_last_run_at := v_due;
      v_last_job_id := v_answer.job_id;
      v_runs := v_runs || row(p_schedule.schedule, v_due, v_answer.job_id, null)::trunkline.schedule_run;
    end if;
    v_due := v_next;
  end loop;
  update trunkline_internal.schedules as s
  set
    next_run_at = v_due,
    last_run_at = v_last_run_at,
    last_job_id = v_last_job_id,
    last_error = case when cardinality(v_runs) = 0 then s.last_error else v_error end,
    last_error_at = case when cardinality(v_runs) = 0 then s.last_error_at when v_error is not null then p_now end,
    skipped = s.skipped + v_skipped
  where s.schedule = p_schedule.schedule;
  return v_runs;
exception
  when others then
    if left(sqlstate, 2) = any(c_passing) then
      raise;
    end if;
    update trunkline_internal.schedules as s
    set paused = true, next_run_at = null, last_error = sqlstate || ': ' || sqlerrm, last_error_at = p_now
    where s.schedule = p_schedule.schedule;
    return array[row(p_schedule.schedule, v_due, null, sqlstate || ': ' || sqlerrm)::trunkline.schedule_run];
end;
$$;
comment on function trunkline_internal.run_schedule(trunkline_internal.schedules, timestamptz, integer) is 'Enqueues the due jobs of one schedule and moves it to its next due time, in one transaction.';
