-- Cancels those of these jobs that wait, at once; returns their ids. The caller's tenant must own them.
-- ready | scheduled | blocked -> cancelled. Locks rows of waiting in id order.
create or replace function trunkline_internal.cancel_waiting(p_jobs uuid[], p_reason text, p_scope text, p_now timestamptz)
returns uuid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_ended trunkline_internal.workflow_end[];
  v_jobs uuid[];
begin
  v_jobs := array(
    select w.job_id
    from trunkline_internal.waiting as w
    where w.job_id = any(p_jobs) and (p_scope is null or w.tenant = p_scope)
    order by w.job_id
    for update of w
  );
  if cardinality(v_jobs) = 0 then
    return v_jobs;
  end if;
  v_ended := trunkline_internal.finish_waiting(p_jobs => v_jobs, p_reason => p_reason, p_now => p_now);
  if v_ended is not null then
    perform trunkline_internal.end_workflow_jobs(p_ended => v_ended, p_now => p_now);
  end if;
  return v_jobs;
end;
$$;
comment on function trunkline_internal.cancel_waiting(uuid[], text, text, timestamptz) is 'Cancels those of these jobs that wait, at once; returns their ids. The caller''s tenant must own them.';
