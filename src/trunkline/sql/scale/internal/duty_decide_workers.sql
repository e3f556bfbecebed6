-- Stores how many workers are wanted for each queue and set of tasks, and logs each change; returns how many changed.
create or replace function trunkline_internal.duty_decide_workers()
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before integer;
  v_changed integer := 0;
  v_now timestamptz := trunkline.clock();
  v_row trunkline.worker_target;
begin
  -- One run at a time: it may also be called by hand.
  lock table trunkline_internal.worker_targets in share row exclusive mode;
  for v_row in
    select t.* from trunkline.worker_targets() as t
  loop
    select t.wanted into v_before
    from trunkline_internal.worker_targets as t
    where t.queue = v_row.queue and t.tasks = coalesce(v_row.tasks, '{}');
    if v_row.wanted = 0 and v_row.workers = 0 and v_row.startable + v_row.running = 0 then
      delete from trunkline_internal.worker_targets as t
      where t.queue = v_row.queue and t.tasks = coalesce(v_row.tasks, '{}');
    else
      insert into trunkline_internal.worker_targets as t (queue, tasks, wanted, low_since, decided_at)
      values (v_row.queue, coalesce(v_row.tasks, '{}'), v_row.wanted, v_row.low_since, v_now)
      on conflict (queue, tasks) do update
      set wanted = excluded.wanted, low_since = excluded.low_since, decided_at = excluded.decided_at
      where (t.wanted, t.low_since) is distinct from (excluded.wanted, excluded.low_since);
    end if;
    if v_row.wanted is distinct from v_before then
      v_changed := v_changed + 1;
      insert into trunkline_internal.operator_log (at, login, actor, action, kind, object, reason, before, after)
      values (
        v_now, session_user, 'decide_workers', 'scale', 'workers',
        left(v_row.queue || coalesce(': ' || array_to_string(v_row.tasks, ', '), ''), 500),
        format('jobs that can start: %s, that run: %s', v_row.startable, v_row.running),
        jsonb_build_object('wanted', v_before), jsonb_build_object('wanted', v_row.wanted)
      );
    end if;
  end loop;
  return v_changed;
end;
$$;
comment on function trunkline_internal.duty_decide_workers() is 'Stores how many workers are wanted for each queue and set of tasks, and logs each change; returns how many changed.';
