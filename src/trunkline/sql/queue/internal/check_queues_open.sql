-- Refuses a batch for queues that are paused against new jobs or have no room for it; costs nothing while no queue is limited.
create or replace function trunkline_internal.check_queues_open(p_jobs jsonb)
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
    select coalesce(j.queue, t.queue) as queue, count(*)::integer as jobs
    from jsonb_to_recordset(p_jobs) as j (task text, queue text)
    left join trunkline_internal.tasks as t on t.task = j.task
    group by 1
    order by 1
  ) as c
  where c.queue is not null;
end;
$$;
comment on function trunkline_internal.check_queues_open(jsonb) is 'Refuses a batch for queues that are paused against new jobs or have no room for it; costs nothing while no queue is limited.';
