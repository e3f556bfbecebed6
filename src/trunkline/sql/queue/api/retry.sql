-- Runs an ended job again: a dead letter under its own id with new attempts, a finished job as a new job that refers to the old one.
-- dead -> ready; completed | cancelled: none -> ready for the new job. A dead letter takes its unique key again; if another
-- job holds the key, the retry is refused and the detail names that job. Until the job created by a retry has ended,
-- further retries of the same finished job return it, even if they run at the same time.
-- Locks: the dead or the finished row, then the rows that enqueue locks.
create or replace function trunkline.retry(p_job uuid)
returns trunkline.enqueued
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_dead trunkline_internal.dead%rowtype;
  v_old trunkline_internal.finished%rowtype;
  v_answer trunkline.enqueued;
  v_scope text := trunkline.tenant_scope();
  v_state text;
begin
  perform trunkline_internal.require_read_committed();
  -- Several rounds, because a job that ends between two of these statements would be found by neither.
  for v_round in 1..3 loop
    delete from trunkline_internal.dead as d
    where d.job_id = p_job and (v_scope is null or d.tenant = v_scope)
    returning d.* into v_dead;
    if found then
      v_answer := trunkline_internal.replay(p_dead => v_dead);
      perform trunkline_internal.log_action(
        p_action => 'retry', p_kind => 'job', p_object => p_job::text,
        p_before => jsonb_build_object('state', 'dead', 'task', v_dead.task, 'reason', v_dead.reason),
        p_after => jsonb_build_object('state', 'ready', 'task', v_dead.task), p_tenant => v_dead.tenant
      );
      return v_answer;
    end if;
    select f.* into v_old
    from trunkline_internal.finished as f
    where f.job_id = p_job
      and f.finished_at >= trunkline_internal.id_time(p_id => p_job) - interval '1 minute'
      and (v_scope is null or f.tenant = v_scope)
    for update of f;
    exit when found;
    v_state := trunkline_internal.visible_live_state(p_job => p_job, p_scope => v_scope);
    exit when v_state is not null;
  end loop;
  if v_old.job_id is null then
    perform trunkline_internal.refuse_state(
      p_job => p_job, p_state => v_state, p_allowed => array['dead', 'completed', 'cancelled']
    );
  end if;
  v_answer := trunkline_internal.rerun(p_old => v_old);
  perform trunkline_internal.log_action(
    p_action => 'retry', p_kind => 'job', p_object => p_job::text,
    p_before => jsonb_build_object('state', v_old.state, 'task', v_old.task),
    p_after => jsonb_build_object('new_job', v_answer.job_id, 'state', v_answer.state, 'task', v_old.task),
    p_tenant => v_old.tenant
  );
  return v_answer;
end;
$$;
comment on function trunkline.retry(uuid) is 'Runs an ended job again: a dead letter under its own id with new attempts, a finished job as a new job that refers to the old one.';
