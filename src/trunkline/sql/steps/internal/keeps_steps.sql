-- Returns whether a job may run again under its id, so that its steps, waits and events are needed: it waits, runs or is dead.
create or replace function trunkline_internal.keeps_steps(p_job uuid)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select from trunkline_internal.waiting as w where w.job_id = p_job
    union all
    select from trunkline_internal.running as r where r.job_id = p_job
    union all
    select from trunkline_internal.dead as d where d.job_id = p_job
  );
end;
$$;
comment on function trunkline_internal.keeps_steps(uuid) is 'Returns whether a job may run again under its id, so that its steps, waits and events are needed: it waits, runs or is dead.';
