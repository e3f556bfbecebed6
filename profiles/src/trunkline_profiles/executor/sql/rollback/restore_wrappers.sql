-- Restores the wake-ups of before phase 1: they wake the workers and take no jobs back.
-- The schedules that call them keep working, and the engine's own duty still reclaims.

do $restore$
begin
  if to_regprocedure('executor.process_orchestrator_jobs()') is null then
    return;
  end if;
  create or replace function executor.process_orchestrator_jobs()
  returns table (reclaimed integer, woken text, error text, failures_in_a_row integer, alert boolean)
  language sql
  volatile
  security definer
  set search_path = pg_catalog, pg_temp
  as $$
    select 0, 'orchestrator', null::text, 0, false from (select pg_notify('trunkline_wake', 'orchestrator')) as n
  $$;
  create or replace function executor.wake_execution_engine()
  returns table (reclaimed integer, woken text, error text, failures_in_a_row integer, alert boolean)
  language sql
  volatile
  security definer
  set search_path = pg_catalog, pg_temp
  as $$
    select 0, 'fase1-executor', null::text, 0, false from (select pg_notify('trunkline_wake', 'fase1-executor')) as n
  $$;
end
$restore$;
drop function if exists executor.run_wake_ups();
drop function if exists executor.executor_cycle(text, text);
