-- Wake-ups: each calls reclaim first, then always wakes the workers of its queue.
-- requires: record, reclaim
-- source: 000300

create or replace function executor.executor_cycle(p_wrapper text, p_queue text)
returns table (reclaimed integer, woken text, error text, failures_in_a_row integer, alert boolean)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_alert_after constant integer := 3;
  v_now timestamptz := trunkline.clock();
begin
  woken := p_queue;
  begin
    select count(*) into reclaimed from executor.reclaim_stale_jobs();
    -- The engine catches errors within its own reclaim and stores them here.
    select d.last_error ->> 'message' into error from trunkline.duties as d where d.duty = 'reclaim';
  exception
    when others then
      reclaimed := 0;
      error := sqlerrm;
  end;
  -- A row that run_wake_ups has locked is deleted by a later call.
  delete from executor.executor_cycles as c
  where c.cycle in (
    select o.cycle from executor.executor_cycles as o where o.at < v_now - interval '1 day' for update skip locked
  );
  insert into executor.executor_cycles (at, wrapper, queue, reclaimed, error)
  values (v_now, p_wrapper, p_queue, executor_cycle.reclaimed, executor_cycle.error);
  select count(*) into failures_in_a_row
  from executor.executor_cycles as c
  where c.cycle > coalesce((select max(g.cycle) from executor.executor_cycles as g where g.error is null), 0);
  alert := failures_in_a_row >= c_alert_after;
  if error is not null then
    raise warning '%reclaim failed, % in a row: %', case when alert then 'ALERT: ' else '' end, failures_in_a_row, error;
  end if;
  perform pg_notify('trunkline_wake', p_queue);
  return next;
end;
$$;
comment on function executor.executor_cycle(text, text) is 'Runs one wake-up: reclaims, records the result, warns about a failure with an alert at the third in a row, then wakes the workers.';

create or replace function executor.process_orchestrator_jobs()
returns table (reclaimed integer, woken text, error text, failures_in_a_row integer, alert boolean)
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
  select * from executor.executor_cycle(p_wrapper => 'process_orchestrator_jobs', p_queue => 'orchestrator')
$$;
comment on function executor.process_orchestrator_jobs() is 'Takes back stale jobs, then wakes the workers of the queue orchestrator.';

create or replace function executor.wake_execution_engine()
returns table (reclaimed integer, woken text, error text, failures_in_a_row integer, alert boolean)
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
  select * from executor.executor_cycle(p_wrapper => 'wake_execution_engine', p_queue => 'fase1-executor')
$$;
comment on function executor.wake_execution_engine() is 'Takes back stale jobs, then wakes the workers of the queue fase1-executor.';

create or replace function executor.run_wake_ups()
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_every constant interval := interval '15 seconds';
  v_last record;
  v_newest bigint;
  v_now timestamptz := trunkline.clock();
begin
  -- The newest cycle serves as the lock, because only the owner can lock it. Any login can hold an advisory lock.
  v_newest := (select max(c.cycle) from executor.executor_cycles as c);
  if v_newest is null then
    begin
      lock table executor.executor_cycles in share row exclusive mode nowait;
    exception
      when lock_not_available then
        return null;
    end;
  else
    perform from executor.executor_cycles as c where c.cycle = v_newest for update skip locked;
    if not found then
      return null;
    end if;
  end if;
  -- Read after taking the lock, because another caller may just have finished.
  select c.wrapper, c.at into v_last from executor.executor_cycles as c order by c.cycle desc limit 1;
  -- A time in the future means that the clock was set back, so do not wait for it.
  if v_last.at > v_now - c_every and v_last.at <= v_now then
    return null;
  end if;
  if v_last.wrapper = 'process_orchestrator_jobs' then
    perform executor.wake_execution_engine();
    return 'wake_execution_engine';
  end if;
  perform executor.process_orchestrator_jobs();
  return 'process_orchestrator_jobs';
end;
$$;
comment on function executor.run_wake_ups() is 'Calls the next wake-up, at least 15 seconds after the last one; any scheduler or worker may call this, as often as it likes.';

revoke all on function
  executor.executor_cycle(text, text), executor.process_orchestrator_jobs(), executor.wake_execution_engine(), executor.run_wake_ups()
from public;
grant execute on function
  executor.process_orchestrator_jobs(), executor.wake_execution_engine(), executor.run_wake_ups()
to trunkline_worker, trunkline_operator;
