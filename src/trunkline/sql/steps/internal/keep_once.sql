-- Copies the results of steps that ran once for an ended workflow to its rerun, if the step whose job recorded them does not run again.
create or replace function trunkline_internal.keep_once(p_old uuid, p_new uuid, p_again integer[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  insert into trunkline_internal.once_steps (scope, started_at, recorded_at, holder, attempt, name, result)
  select p_new, o.started_at, o.recorded_at, o.holder, o.attempt, o.name, o.result
  from trunkline_internal.once_steps as o
  where o.scope = p_old
    and o.recorded_at is not null
    and exists (
      select
      from trunkline_internal.workflow_steps as s
      join trunkline_internal.workflow_ends as e
        on e.workflow_id = coalesce(s.result_of, s.workflow_id) and e.step = s.place
      where s.workflow_id = p_old and s.place <> all(p_again) and e.job_id = o.holder
    );
end;
$$;
comment on function trunkline_internal.keep_once(uuid, uuid, integer[]) is 'Copies the results of steps that ran once for an ended workflow to its rerun, if the step whose job recorded them does not run again.';
