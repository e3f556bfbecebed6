-- Records that a duty failed; its own work was rolled back by the caller's exception block, this record commits.
create or replace function trunkline_internal.duty_failed(p_duty text, p_sqlstate text, p_message text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  update trunkline_internal.duties as d
  set
    ended_at = trunkline.clock(), rows = 0, failures = d.failures + 1, failures_in_a_row = d.failures_in_a_row + 1,
    last_error = jsonb_build_object('sqlstate', p_sqlstate, 'message', p_message)
  where d.duty = p_duty;
  raise warning 'duty % failed: % (%)', p_duty, p_message, p_sqlstate;
end;
$$;
comment on function trunkline_internal.duty_failed(text, text, text) is 'Records that a duty failed; its own work was rolled back by the caller''s exception block, this record commits.';
