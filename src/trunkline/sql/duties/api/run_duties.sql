-- Runs every duty that is due; whoever is there calls it, the guard of each makes many callers harmless.
create or replace function trunkline.run_duties()
returns setof trunkline.duty_run
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before record;
  v_after record;
begin
  perform trunkline_internal.require_read_committed();
  for v_before in
    select d.duty, d.runs
    from trunkline_internal.duties as d
    where d.started_at is null
      or d.started_at <= trunkline.clock() - d.every
      -- The clock was set back: nobody waits until it has come that far again.
      or d.started_at > trunkline.clock()
    -- Last, because a partition it attaches stays locked until this transaction ends.
    order by d.duty = 'maintain_partitions', d.duty
  loop
    case v_before.duty
      when 'maintain_partitions' then perform trunkline.maintain_partitions();
      when 'promote' then perform trunkline.promote();
      when 'reclaim' then perform trunkline.reclaim();
      when 'run_schedules' then perform trunkline.run_schedules();
      when 'sweep_buckets' then perform trunkline.sweep_buckets();
      when 'sweep_idempotency' then perform trunkline.sweep_idempotency();
    end case;
    select d.runs, d.rows, d.last_error ->> 'message' as error
    into v_after
    from trunkline_internal.duties as d
    where d.duty = v_before.duty;
    return next row(v_before.duty, v_after.runs > v_before.runs, v_after.rows, v_after.error)::trunkline.duty_run;
  end loop;
end;
$$;
comment on function trunkline.run_duties() is 'Runs every duty that is due; whoever is there calls it, the guard of each makes many callers harmless.';
