-- Returns the jobs of a graph that a closed or full queue may refuse: those that start at once.
-- Jobs of later steps do not wait in the queue yet. If such a step alone has more jobs than may wait there, all are returned.
create or replace function trunkline_internal.jobs_to_admit(p_jobs jsonb, p_steps integer[], p_later boolean[])
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when exists (
      select
      from (
        select coalesce(j.job ->> 'queue', t.queue) as queue, count(*) as jobs
        from jsonb_array_elements(p_jobs) with ordinality as j (job, place)
        left join trunkline_internal.tasks as t on t.task = j.job ->> 'task'
        where p_later[j.place]
        group by coalesce(j.job ->> 'queue', t.queue), p_steps[j.place]
      ) as s
      join trunkline_internal.queues as q on q.queue = s.queue and q.max_depth < s.jobs
    ) then p_jobs
    else (
      select coalesce(jsonb_agg(j.job), '[]')
      from jsonb_array_elements(p_jobs) with ordinality as j (job, place)
      where p_later[j.place] is not true
    )
  end
$$;
comment on function trunkline_internal.jobs_to_admit(jsonb, integer[], boolean[]) is 'Returns the jobs of a graph that a closed or full queue may refuse: those that start at once.';
