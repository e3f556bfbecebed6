-- Returns the event that was sent to a job, or to a key in a tenant, under a name; null if there is none.
create or replace function trunkline_internal.event_for(p_job uuid, p_tenant text, p_address text, p_name text)
returns trunkline_internal.sent_events
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_event trunkline_internal.sent_events;
begin
  if p_address is null then
    select e.* into v_event from trunkline_internal.sent_events as e where e.job_id = p_job and e.name = p_name;
  else
    select e.* into v_event
    from trunkline_internal.sent_events as e
    where e.address = p_address and e.name = p_name and coalesce(e.tenant, '') = coalesce(p_tenant, '');
  end if;
  return v_event;
end;
$$;
comment on function trunkline_internal.event_for(uuid, text, text, text) is 'Returns the event that was sent to a job, or to a key in a tenant, under a name; null if there is none.';
