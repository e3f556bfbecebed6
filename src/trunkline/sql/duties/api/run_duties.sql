-- Runs every enabled duty that is due, and returns one row for each. Any number of sessions may call it: each duty runs once.
create or replace function trunkline.run_duties()
returns setof trunkline.duty_run
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_duty text;
begin
  perform trunkline_internal.require_read_committed();
  for v_duty in
    select d.duty
    from trunkline_internal.duties as d
    where d.enabled
      and trunkline_internal.is_due(p_started_at => d.started_at, p_every => d.every, p_now => trunkline.clock())
    order by d.run_order, d.duty
  loop
    return query
    select v_duty, r.ran, r.done, r.error
    from trunkline_internal.guard_duty(p_duty => v_duty, p_due_only => true) as r;
  end loop;
end;
$$;
comment on function trunkline.run_duties() is 'Runs every enabled duty that is due, and returns one row for each. Any number of sessions may call it: each duty runs once.';
