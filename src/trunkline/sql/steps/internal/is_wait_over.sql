-- Returns whether a job need not wait any longer: its time has come, or what it waits for is there.
create or replace function trunkline_internal.is_wait_over(p_wait trunkline_internal.job_waits, p_now timestamptz)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_wait.until <= p_now then
    return true;
  end if;
  return case p_wait.kind
    when 'event' then (trunkline_internal.event_for(
      p_job => p_wait.job_id, p_tenant => p_wait.tenant, p_address => p_wait.address, p_name => p_wait.name
    )).name is not null
    when 'once' then exists (
      select
      from trunkline_internal.once_steps as o
      where o.scope = p_wait.reference and o.name = p_wait.name and o.recorded_at is not null
    )
    when 'jobs' then not exists (
      select from trunkline_internal.workflows as w where w.workflow_id = p_wait.reference and w.ended_at is null
    )
    else false
  end;
end;
$$;
comment on function trunkline_internal.is_wait_over(trunkline_internal.job_waits, timestamptz) is 'Returns whether a job need not wait any longer: its time has come, or what it waits for is there.';
