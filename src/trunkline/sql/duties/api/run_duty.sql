-- Runs one duty now, due or not, enabled or not; returns whether it ran, on how many rows, and its error.
-- An error in the duty is recorded and returned, not raised. It does not run while another session runs it.
create or replace function trunkline.run_duty(p_duty text)
returns trunkline.duty_run
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select row(p_duty, r.ran, r.done, r.error)::trunkline.duty_run from trunkline_internal.guard_duty(p_duty => p_duty) as r
  );
end;
$$;
comment on function trunkline.run_duty(text) is 'Runs one duty now, due or not, enabled or not; returns whether it ran, on how many rows, and its error.';
