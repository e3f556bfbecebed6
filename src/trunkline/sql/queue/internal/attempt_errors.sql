-- Returns the errors of a job's attempts, at most the last twenty, oldest first.
create or replace function trunkline_internal.attempt_errors(p_job uuid)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_agg(
    jsonb_build_object('attempt', e.attempt, 'at', e.at, 'kind', e.kind, 'worker', e.worker)
      || coalesce(e.detail -> 'error', '{}'::jsonb)
    order by e.at, e.attempt
  )
  from (
    select e.attempt, e.at, e.kind, e.worker, e.detail
    from trunkline_internal.events as e
    where e.job_id = p_job
      and e.at >= trunkline_internal.id_time(p_id => p_job) - interval '1 minute'
      and e.kind in ('failed', 'lost')
    order by e.at desc
    limit 20
  ) as e
$$;
comment on function trunkline_internal.attempt_errors(uuid) is 'Returns the errors of a job''s attempts, at most the last twenty, oldest first.';
