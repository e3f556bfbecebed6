-- Completes what an earlier call left out because other transactions had locked rows: jobs of open steps are unblocked, those of cancelled steps cancelled.
-- The caller holds the workflow's lock.
create or replace function trunkline_internal.finish_moves(p_workflow uuid, p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_cancelled integer[];
  v_opened integer[];
begin
  select
    array_agg(s.place) filter (where s.state = 'open'), array_agg(s.place) filter (where s.state = 'cancelled' and s.reason = 'dependency')
  into v_opened, v_cancelled
  from (
    select distinct w.workflow_step
    from trunkline_internal.waiting as w
    where w.workflow_id = p_workflow and w.reason = 'dependency' and (w.state = 'blocked') is true
  ) as w
  join trunkline_internal.workflow_steps as s on s.workflow_id = p_workflow and s.place = w.workflow_step;
  if v_opened is not null then
    perform trunkline_internal.unblock_jobs(p_workflow => p_workflow, p_places => v_opened, p_now => p_now);
  end if;
  if v_cancelled is not null then
    perform trunkline_internal.cancel_step_jobs(
      p_workflow => p_workflow, p_places => v_cancelled, p_reason => 'dependency', p_now => p_now
    );
  end if;
end;
$$;
comment on function trunkline_internal.finish_moves(uuid, timestamptz) is 'Completes what an earlier call left out because other transactions had locked rows: jobs of open steps are unblocked, those of cancelled steps cancelled.';
