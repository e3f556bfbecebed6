-- Refuses a batch if one of its queues is closed or would exceed its depth limit. Almost free while no queue is restricted.
-- p_jobs is a document of requests or, with p_task, the payloads of one task.
create or replace function trunkline_internal.check_queues_open(p_jobs jsonb, p_task text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (
    select from trunkline_internal.queues as q where q.refuse_enqueue or q.max_depth is not null
  ) then
    return;
  end if;
  perform trunkline_internal.check_queue_open(p_queue => c.queue, p_jobs => c.jobs)
  from (
    select coalesce(case when p_task is null then j.job ->> 'queue' end, t.queue) as queue, count(*)::integer as jobs
    from jsonb_array_elements(p_jobs) as j (job)
    left join trunkline_internal.tasks as t on t.task = coalesce(p_task, j.job ->> 'task')
    group by 1
    order by 1
  ) as c
  where c.queue is not null;
end;
$$;
comment on function trunkline_internal.check_queues_open(jsonb, text) is 'Refuses a batch if one of its queues is closed or would exceed its depth limit. Almost free while no queue is restricted.';
