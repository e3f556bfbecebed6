-- Returns the present state of jobs that the caller can see, each with the output that its latest attempt emitted after an offset.
-- The offset is an attempt and the number of a chunk; of another attempt, all output is returned. At most 64 KB for each job
-- and call, then has_more is true. At most 100 jobs; one that is unknown has no row. Reads all tables in one snapshot.
create or replace function trunkline.live_jobs(p_jobs uuid[], p_attempts integer[], p_numbers integer[])
returns setof trunkline.live_job
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  c_most constant integer := 65536;
  v_scope text := trunkline.tenant_scope();
begin
  if array_ndims(p_jobs) > 1 or cardinality(p_jobs) > 100
    or cardinality(p_attempts) is distinct from cardinality(p_jobs) or cardinality(p_numbers) is distinct from cardinality(p_jobs)
  then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object('argument', 'p_jobs', 'must_be', 'one list of at most 100 jobs, with as many attempts and numbers')
    );
  end if;
  return query
  select
    j.job_id, j.task, j.state, j.attempt, j.progress, j.phase, j.message, j.reason, j.tenant, j.run_at, j.finished_at,
    j.workflow_id,
    c.chunks, c.number, coalesce(c.number < c.newest, false)
  from unnest(p_jobs, p_attempts, p_numbers) as a (job_id, attempt, number)
  join lateral (
    select *
    from trunkline_internal.all_jobs as j
    where j.job_id = a.job_id
      and j.prune_by >= trunkline_internal.id_time(p_id => a.job_id) - interval '1 minute'
      and (v_scope is null or j.tenant = v_scope)
    limit 1
  ) as j on true
  left join lateral (
    select
      string_agg(e.chunk, '' order by e.number) as chunks, max(e.number) as number,
      (
        select n.number
        from trunkline_internal.emitted_chunks as n
        where n.job_id = a.job_id and n.attempt = j.attempt
        order by n.number desc
        limit 1
      ) as newest
    from trunkline_internal.emitted_chunks as e
    where e.job_id = a.job_id
      and e.attempt = j.attempt
      and e.number > case when a.attempt = j.attempt then a.number else 0 end
      and e.bytes <= c_most + coalesce((
        select o.bytes
        from trunkline_internal.emitted_chunks as o
        where o.job_id = a.job_id
          and o.attempt = j.attempt
          and o.number <= case when a.attempt = j.attempt then a.number else 0 end
        order by o.number desc
        limit 1
      ), 0)
  ) as c on true;
end;
$$;
comment on function trunkline.live_jobs(uuid[], integer[], integer[]) is 'Returns the present state of jobs that the caller can see, each with the output that its latest attempt emitted after an offset.';
