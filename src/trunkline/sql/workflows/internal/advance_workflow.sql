-- Brings a workflow up to date after jobs of the given steps have ended: ends steps, opens or cancels dependants, ends the workflow.
-- The caller holds the workflow's lock exclusively, so every statement sees all ends before it. Without p_places all live
-- steps are examined, as the duty does. A row that another transaction has locked is left to that transaction, which locks the
-- workflow after it, or to the duty. Doing it twice changes nothing more.
create or replace function trunkline_internal.advance_workflow(p_workflow uuid, p_now timestamptz, p_places integer[] default null)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_closed integer[];
  v_completed integer[];
  v_places integer[] := p_places;
  v_workflow trunkline_internal.workflows;
begin
  select w.* into v_workflow from trunkline_internal.workflows as w where w.workflow_id = p_workflow;
  if v_workflow.state is distinct from 'live' then
    return;
  end if;
  if v_workflow.cancel_requested_at is not null then
    perform trunkline_internal.stop_jobs(p_workflow => v_workflow, p_now => p_now);
    v_places := null;
  end if;
  if v_places is null then
    perform trunkline_internal.finish_moves(p_workflow => p_workflow, p_now => p_now);
    v_places := array(
      select s.place from trunkline_internal.workflow_steps as s where s.workflow_id = p_workflow and s.state in ('blocked', 'open')
    );
  end if;
  while cardinality(v_places) > 0 loop
    with judged as materialized (
      select
        s.place,
        case
          -- A set of which an item was cancelled while it was blocked is judged when it opens: its other items run then.
          when s.state = 'blocked' and s.kind <> 'job' then null
          when e.has_dead then 'failed'
          when s.state = 'cancelled' then null
          when e.has_cancelled then 'cancelled'
          when s.items is null or s.expanded < s.items then null
          when exists (
            select from trunkline_internal.running as r where r.workflow_id = p_workflow and r.workflow_step = s.place
          ) then null
          when exists (
            select from trunkline_internal.waiting as w where w.workflow_id = p_workflow and w.workflow_step = s.place
          ) then null
          else 'completed'
        end as state
      from trunkline_internal.workflow_steps as s
      cross join lateral (
        select coalesce(bool_or(e.state = 'dead'), false) as has_dead, coalesce(bool_or(e.state = 'cancelled'), false) as has_cancelled
        from trunkline_internal.workflow_ends as e
        where e.workflow_id = p_workflow and e.step = s.place and e.state <> 'completed'
      ) as e
      where s.workflow_id = p_workflow and s.place = any(v_places)
        -- Another item of a step that counts as cancelled may be dead by now.
        and (s.state in ('blocked', 'open') or (s.state = 'cancelled' and s.reason <> 'dependency'))
    ),
    changed as (
      update trunkline_internal.workflow_steps as s
      set
        state = j.state, ended_at = p_now,
        reason = case
          when j.state = 'failed' then 'dead'
          when j.state = 'cancelled' then case when v_workflow.cancel_requested_at is null then 'cancelled' else 'workflow' end
        end
      from judged as j
      where s.workflow_id = p_workflow and s.place = j.place and (j.state <> 'completed' or (j.state = 'completed' and s.state = 'open'))
      returning s.place, s.state
    )
    select array_agg(c.place) filter (where c.state = 'completed'), array_agg(c.place) filter (where c.state <> 'completed')
    into v_completed, v_closed
    from changed as c;
    if v_closed is not null then
      perform trunkline_internal.cancel_dependants(p_workflow => p_workflow, p_places => v_closed, p_now => p_now);
    end if;
    v_places := '{}';
    if v_completed is not null then
      -- An opened set without items is complete at once.
      v_places := trunkline_internal.open_dependants(p_workflow => p_workflow, p_places => v_completed, p_now => p_now);
    end if;
  end loop;
  if not exists (
      select
      from trunkline_internal.workflow_steps as s
      where s.workflow_id = p_workflow and s.state in ('blocked', 'open')
      order by s.workflow_id desc, s.place desc
    )
    and not exists (select from trunkline_internal.running as r where r.workflow_id = p_workflow)
    and not exists (select from trunkline_internal.waiting as w where w.workflow_id = p_workflow)
  then
    perform trunkline_internal.end_workflow(p_workflow => v_workflow, p_now => p_now);
  end if;
end;
$$;
comment on function trunkline_internal.advance_workflow(uuid, timestamptz, integer[]) is 'Brings a workflow up to date after jobs of the given steps have ended: ends steps, opens or cancels dependants, ends the workflow.';
