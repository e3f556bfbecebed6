-- Sends the caller a notice if the job that a request returns belongs to another task than the requested one.
-- Called for duplicates in a profile, where a unique key counts for all tasks.
create or replace function trunkline_internal.note_other_task(
  p_job uuid,
  p_task text,
  p_profile text,
  p_unique_key text
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set client_min_messages = notice
as $$
declare
  v_task text;
begin
  select w.task into v_task from trunkline_internal.waiting as w where w.job_id = p_job;
  if not found then
    -- One statement, because two would miss a job that moves between them.
    select j.task into v_task
    from (
      select w.task from trunkline_internal.waiting as w where w.job_id = p_job
      union all
      select r.task from trunkline_internal.running as r where r.job_id = p_job
      union all
      select d.task from trunkline_internal.dead as d where d.job_id = p_job
      union all
      select f.task
      from trunkline_internal.finished as f
      where f.job_id = p_job and f.finished_at >= trunkline_internal.id_time(p_id => p_job) - interval '1 minute'
    ) as j
    limit 1;
  end if;
  if v_task <> p_task then
    raise notice using
      errcode = '01TL1',
      message = 'the request returned a job of another task: within a profile a unique key counts for all tasks',
      detail = jsonb_strip_nulls(jsonb_build_object(
        'task', p_task, 'job', p_job, 'job_task', v_task, 'profile', p_profile, 'unique_key', p_unique_key
      )),
      hint = 'Include the name of the task in the key if each task needs its own job.';
  end if;
end;
$$;
comment on function trunkline_internal.note_other_task(uuid, text, text, text) is 'Sends the caller a notice if the job that a request returns belongs to another task than the requested one.';
