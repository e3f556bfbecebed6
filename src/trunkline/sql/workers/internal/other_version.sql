-- Returns the newest live worker that serves a task, queue and tenant with other code than the given worker; null if none does.
-- Other code has another fingerprint of the task's payload, the part of its signature before the colon. With p_results the
-- question is whether it may read a result that this code cannot: then any task that both serve counts, with its result and
-- its code. Types of recorded steps are known only where the handler runs, so any difference in its code may be one of them.
-- Draining workers do not count, because they claim nothing. Workers without a fingerprint do not count either, because
-- they may run the same code. PL/pgSQL, because hand_over calls it for each job.
create or replace function trunkline_internal.other_version(
  p_worker text,
  p_task text,
  p_queue text,
  p_tenant text,
  p_results boolean,
  p_now timestamptz
)
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_other text;
begin
  select w.worker
  into v_other
  from trunkline_internal.workers as own
  join trunkline_internal.workers as w
    on case
      when p_results then exists (
        select from jsonb_each_text(own.signatures) as s (task, signature) where w.signatures ->> s.task <> s.signature
      )
      else split_part(w.signatures ->> p_task, ':', 1) <> split_part(own.signatures ->> p_task, ':', 1)
    end
  where own.worker = p_worker
    and w.state = 'active'
    and w.seen_at >= p_now - trunkline_internal.setting(p_name => 'pulse_misses')::integer * w.pulse_interval
    and (w.tenant is null or w.tenant = p_tenant)
    and (w.queues is null or p_queue = any(w.queues))
    and (w.tasks is null or p_task = any(w.tasks))
  order by w.started_at desc, w.worker
  limit 1;
  return v_other;
end;
$$;
comment on function trunkline_internal.other_version(text, text, text, text, boolean, timestamptz) is 'Returns the newest live worker that serves a task, queue and tenant with other code than the given worker; null if none does.';
