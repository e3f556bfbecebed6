-- Returns the state and due time of a waiting or running job; null if it is neither.
-- Two rounds, because the job may move back to waiting between the two statements.
create or replace function trunkline_internal.live_state(p_job uuid)
returns trunkline.enqueued
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_answer trunkline.enqueued;
begin
  for v_round in 1..2 loop
    select w.job_id, false, w.state, w.run_at into v_answer
    from trunkline_internal.waiting as w where w.job_id = p_job;
    if found then
      return v_answer;
    end if;
    select r.job_id, false, 'running', r.run_at into v_answer
    from trunkline_internal.running as r where r.job_id = p_job;
    if found then
      return v_answer;
    end if;
  end loop;
  return null;
end;
$$;
comment on function trunkline_internal.live_state(uuid) is 'Returns the state and due time of a waiting or running job; null if it is neither.';
