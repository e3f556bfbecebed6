-- Records that jobs of workflows have ended, in the transaction that ends them, and does what follows: opens steps, cancels dependants, ends workflows.
-- While another job of the step is certain to end later, the workflow is only locked shared, so ends of one step do not wait
-- for each other. Otherwise the lock is exclusive, and what is left is read again under it. Of two last ends at the same
-- instant, each sees the other's row locked, so both want the exclusive lock, and the second one sees the first one's commit.
-- Without p_wait, and beyond c_most workflows in a call, a workflow that cannot be locked at once is left to the duty.
-- The caller has locked and moved the jobs' rows.
create or replace function trunkline_internal.end_workflow_jobs(
  p_ended trunkline_internal.workflow_end[],
  p_now timestamptz,
  p_wait boolean default true
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  -- Each workflow is a lock until the commit.
  c_most constant integer := 200;
  v_marked uuid[];
  v_number integer := 0;
  v_places integer[];
  v_workflow record;
begin
  perform trunkline_internal.record_workflow_ends(p_ended => p_ended, p_now => p_now);
  for v_workflow in
    select e.workflow_id as id, array_agg(distinct e.step) as places, bool_or(e.state <> 'completed') as is_bad
    from unnest(p_ended) as e
    group by e.workflow_id
    order by uuid_hash(e.workflow_id), e.workflow_id
  loop
    v_number := v_number + 1;
    if v_number > c_most then
      v_marked := v_marked || v_workflow.id;
      continue;
    end if;
    v_places := v_workflow.places;
    if not v_workflow.is_bad and p_wait then
      v_places := trunkline_internal.quiet_steps(p_workflow => v_workflow.id, p_places => v_places);
      if cardinality(v_places) = 0 then
        -- The proof counts only if nobody can read what is left between it and the commit: read it again under the lock.
        perform trunkline_internal.lock_workflow(p_workflow => v_workflow.id, p_shared => true);
        v_places := trunkline_internal.quiet_steps(p_workflow => v_workflow.id, p_places => v_workflow.places);
        continue when cardinality(v_places) = 0;
        -- To wait for the exclusive lock while holding the shared one could be a deadlock.
        if not trunkline_internal.lock_workflow(p_workflow => v_workflow.id, p_wait => false) then
          v_marked := v_marked || v_workflow.id;
          continue;
        end if;
      end if;
    end if;
    if not trunkline_internal.lock_workflow(p_workflow => v_workflow.id, p_wait => p_wait) then
      v_marked := v_marked || v_workflow.id;
      continue;
    end if;
    -- All steps again: a proof from before the lock may have ended while this call waited for it.
    perform trunkline_internal.advance_workflow(p_workflow => v_workflow.id, p_now => p_now, p_places => v_workflow.places);
  end loop;
  if v_marked is not null then
    perform trunkline_internal.mark_workflows(p_workflows => v_marked, p_now => p_now);
  end if;
end;
$$;
comment on function trunkline_internal.end_workflow_jobs(trunkline_internal.workflow_end[], timestamptz, boolean) is 'Records that jobs of workflows have ended, in the transaction that ends them, and does what follows: opens steps, cancels dependants, ends workflows.';
