-- Changes the priority of a waiting job and moves it to the end of that priority.
-- ready -> ready with a new sequence number; scheduled and blocked jobs keep their state. A job that already has the
-- priority is not locked, because claims would skip it until their next full scan.
create or replace function trunkline.reprioritise(p_job uuid, p_priority integer)
returns trunkline.changed_job
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_job record;
  v_scope text := trunkline.tenant_scope();
  v_state text;
begin
  perform trunkline_internal.require_read_committed();
  if p_priority is null or p_priority not between -50 and 49 then
    perform trunkline_internal.refuse(
      p_name => 'priority_out_of_range',
      p_detail => jsonb_build_object('priority', p_priority, 'minimum', -50, 'maximum', 49)
    );
  end if;
  for v_round in 1..3 loop
    select w.queue, w.task, w.tenant, w.attempt, w.state, w.lane
    into v_job
    from trunkline_internal.waiting as w
    where w.job_id = p_job and (v_scope is null or w.tenant = v_scope);
    if not found then
      v_state := coalesce(
        trunkline_internal.visible_live_state(p_job => p_job, p_scope => v_scope),
        trunkline_internal.visible_end(p_job => p_job, p_scope => v_scope)
      );
      -- The job came back to waiting between the two statements: try again.
      continue when v_state in ('ready', 'scheduled', 'blocked');
      perform trunkline_internal.refuse_state(
        p_job => p_job, p_state => v_state, p_allowed => array['ready', 'scheduled', 'blocked']
      );
    end if;
    if (v_job.lane >> 1) = p_priority then
      return row(p_job, 'unchanged', v_job.state)::trunkline.changed_job;
    end if;
    perform trunkline_internal.ensure_lane(p_queue => v_job.queue, p_lane => p_priority * 2);
    perform pg_current_xact_id();
    update trunkline_internal.waiting as w
    set
      lane = p_priority * 2,
      sequence = case when w.state = 'ready' then nextval('trunkline_internal.job_sequence') end
    where w.job_id = p_job and (v_scope is null or w.tenant = v_scope);
    if found then
      -- The sequence number of a job that is set aside is in this table.
      update trunkline_internal.set_aside as a set sequence = nextval('trunkline_internal.job_sequence') where a.job_id = p_job;
      perform trunkline_internal.record_event(
        p_at => trunkline.clock(), p_job => p_job, p_attempt => v_job.attempt, p_kind => 'reprioritised',
        p_to_state => v_job.state, p_task => v_job.task, p_queue => v_job.queue, p_tenant => v_job.tenant,
        p_worker => null, p_detail => jsonb_build_object('from', v_job.lane >> 1, 'to', p_priority)
      );
      perform trunkline_internal.log_action(
        p_action => 'reprioritise', p_kind => 'job', p_object => p_job::text,
        p_before => jsonb_build_object('priority', v_job.lane >> 1, 'state', v_job.state, 'task', v_job.task),
        p_after => jsonb_build_object('priority', p_priority, 'state', v_job.state, 'task', v_job.task), p_tenant => v_job.tenant
      );
      return row(p_job, 'reprioritised', v_job.state)::trunkline.changed_job;
    end if;
  end loop;
  perform trunkline_internal.refuse_state(
    p_job => p_job, p_state => 'running', p_allowed => array['ready', 'scheduled', 'blocked']
  );
  -- Not reached: the refusal ends the call.
  return null;
end;
$$;
comment on function trunkline.reprioritise(uuid, integer) is 'Changes the priority of a waiting job and moves it to the end of that priority.';
