-- Copies results that workflows may still read from a span of time to workflow_ends, before the partition of finished jobs is dropped.
-- Those are results that keeps_results keeps. Of a result in the store the reference is copied; the file is kept for as long.
create or replace function trunkline_internal.rescue_results(p_lower timestamptz, p_upper timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
as $$
begin
  with needed as materialized (
    select w.workflow_id
    from trunkline_internal.workflows as w
    where w.workflow_id in (
        select e.workflow_id
        from trunkline_internal.workflow_ends as e
        where e.state = 'completed' and e.finished_at >= p_lower and e.finished_at < p_upper
      )
      and trunkline_internal.keeps_results(p_workflow => w)
  )
  update trunkline_internal.workflow_ends as e
  set result = coalesce(f.result, (
    select b.body from trunkline_internal.bodies as b where b.job_id = f.job_id and b.kind = 'result' and b.day = f.result_day
  ))
  from needed as w, trunkline_internal.finished as f
  where w.workflow_id = e.workflow_id
    and e.state = 'completed'
    and e.result is null
    and e.finished_at >= p_lower
    and e.finished_at < p_upper
    and f.job_id = e.job_id
    and f.finished_at = e.finished_at
    and (f.result is not null or f.result_day is not null);
end;
$$;
comment on function trunkline_internal.rescue_results(timestamptz, timestamptz) is 'Copies results that workflows may still read from a span of time to workflow_ends, before the partition of finished jobs is dropped.';
