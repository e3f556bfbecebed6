-- Removes sent events past retention, and waits and once results of jobs that no longer exist, at most p_limit of each; returns how many. The work of the duty sweep_steps.
-- Also resumes jobs whose child jobs have ended, if the end could not do it; see resume_parent.
-- An event that was sent to a job stays while the job can still receive it, also as a dead letter.
create or replace function trunkline_internal.duty_sweep_steps(p_limit integer default 10000)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_done integer;
  v_now timestamptz := trunkline.clock();
  v_total integer;
begin
  delete from trunkline_internal.sent_events as e
  where e.ctid = any(array(
    select o.ctid
    from trunkline_internal.sent_events as o
    where o.sent_at <= v_now - trunkline_internal.setting(p_name => 'sent_event_retention')::interval
      and (o.job_id is null or not trunkline_internal.keeps_steps(p_job => o.job_id))
    order by o.sent_at
    limit p_limit
    for update of o skip locked
  ));
  get diagnostics v_total = row_count;
  delete from trunkline_internal.job_waits as j
  where j.ctid = any(array(
    select o.ctid
    from trunkline_internal.job_waits as o
    where not trunkline_internal.keeps_steps(p_job => o.job_id)
    limit p_limit
    for update of o skip locked
  ));
  get diagnostics v_done = row_count;
  v_total := v_total + v_done;
  delete from trunkline_internal.once_steps as s
  where s.ctid = any(array(
    select o.ctid
    from trunkline_internal.once_steps as o
    where o.started_at <= v_now - trunkline_internal.setting(p_name => 'finished_retention')::interval
      and not exists (select from trunkline_internal.workflows as w where w.workflow_id = o.scope)
      and not trunkline_internal.keeps_steps(p_job => o.scope)
    order by o.started_at
    limit p_limit
    for update of o skip locked
  ));
  get diagnostics v_done = row_count;
  return v_total + v_done + trunkline_internal.resume_jobs(
    p_jobs => array(
      select j.job_id
      from trunkline_internal.job_waits as j
      join trunkline_internal.waiting as w on w.job_id = j.job_id and w.reason = 'suspended' and w.attempt = j.attempt
      where j.kind = 'jobs' and trunkline_internal.is_wait_over(p_wait => j, p_now => v_now)
      limit p_limit
    ),
    p_cause => 'jobs', p_wait => false
  );
end;
$$;
comment on function trunkline_internal.duty_sweep_steps(integer) is 'Removes sent events past retention, and waits and once results of jobs that no longer exist, at most p_limit of each; returns how many. The work of the duty sweep_steps.';
