-- Records that a duty went well, and on how many rows.
create or replace function trunkline_internal.duty_end(p_duty text, p_rows integer)
returns void
language sql
volatile
as $$
  update trunkline_internal.duties as d
  set
    ended_at = trunkline.clock(), succeeded_at = trunkline.clock(), rows = p_rows, failures_in_a_row = 0, last_error = null
  where d.duty = p_duty
$$;
comment on function trunkline_internal.duty_end(text, integer) is 'Records that a duty went well, and on how many rows.';
