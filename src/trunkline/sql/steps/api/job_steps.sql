-- Returns the steps of a job in the order of recording: recorded ones with their results, and what it waits for.
-- Steps that ran once for its workflow come first, with place 0 and the number of the attempt that ran them, maybe of another job.
create or replace function trunkline.job_steps(p_job uuid)
returns setof trunkline.job_step
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_scope uuid;
begin
  select coalesce(j.workflow_id, p_job) into v_scope from trunkline.job(p_job => p_job) as j;
  if not found then
    perform trunkline_internal.refuse(p_name => 'unknown_job', p_detail => jsonb_build_object('job', p_job));
  end if;
  return query
  select *
  from (
    select
      s.place, s.kind, s.name, s.key, 'recorded' as state, s.attempt, s.recorded_at, null::timestamptz as until, s.result,
      (
        -- Staged until the job completes.
        select a.bytes
        from trunkline_internal.staged_artifacts as a
        where a.artifact_id = trunkline_internal.result_reference(p_result => s.result)
          and a.job_id = s.job_id
          and a.kind = 'result'
          and a.step = s.name
        union all
        select a.bytes
        from trunkline_internal.artifacts as a
        where a.artifact_id = trunkline_internal.result_reference(p_result => s.result)
          and a.job_id = s.job_id
          and a.kind = 'result'
          and a.step = s.name
      ) as bytes
    from trunkline_internal.recorded_steps as s
    where s.job_id = p_job and s.day >= trunkline_internal.steps_since(p_job => p_job)
    union all
    select
      0, 'once', o.name, '#1', 'recorded', o.attempt, o.recorded_at, null, o.result,
      (
        select a.bytes
        from trunkline_internal.artifacts as a
        where a.artifact_id = trunkline_internal.result_reference(p_result => o.result)
          and a.job_id = o.holder
          and a.kind = 'result'
      )
    from trunkline_internal.once_steps as o
    where o.scope = v_scope and o.recorded_at is not null
    union all
    select w.place, w.kind, w.name, w.key, 'waiting', w.attempt, null, w.until, null, null
    from trunkline_internal.job_waits as w
    where w.job_id = p_job
      -- An ended job waits for nothing; the duty removes such rows.
      and (
        exists (select from trunkline_internal.waiting as j where j.job_id = p_job)
        or exists (select from trunkline_internal.running as j where j.job_id = p_job)
      )
  ) as a
  order by a.place, a.recorded_at nulls last;
end;
$$;
comment on function trunkline.job_steps(uuid) is 'Returns the steps of a job in the order of recording: recorded ones with their results, and what it waits for.';
