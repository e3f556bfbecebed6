-- Raises the priority of a waiting job and returns true; returns false without a lock if its priority is already as high.
-- A lock without a change would make claims skip the job until their next full scan.
-- ready -> ready with a new sequence number; scheduled and blocked jobs keep their state.
create or replace function trunkline_internal.raise_priority(p_job uuid, p_priority integer)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue text;
begin
  select w.queue into v_queue
  from trunkline_internal.waiting as w
  where w.job_id = p_job and (w.lane >> 1) < p_priority;
  if not found then
    return false;
  end if;
  perform trunkline_internal.ensure_lane(p_queue => v_queue, p_lane => p_priority * 2);
  perform pg_current_xact_id();
  update trunkline_internal.waiting as w
  set
    lane = p_priority * 2,
    sequence = case when w.state = 'ready' then nextval('trunkline_internal.job_sequence') end
  where w.job_id = p_job and (w.lane >> 1) < p_priority;
  if not found then
    return false;
  end if;
  -- The sequence number of a job that is set aside is in this table.
  update trunkline_internal.set_aside as a set sequence = nextval('trunkline_internal.job_sequence') where a.job_id = p_job;
  return true;
end;
$$;
comment on function trunkline_internal.raise_priority(uuid, integer) is 'Raises the priority of a waiting job and returns true; returns false without a lock if its priority is already as high.';
