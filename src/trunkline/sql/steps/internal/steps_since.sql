-- Returns the first day on which a step of a job can have been recorded, so that look-ups need not visit older partitions.
create or replace function trunkline_internal.steps_since(p_job uuid)
returns date
language sql
stable
as $$
  select (trunkline_internal.id_time(p_id => p_job) at time zone 'UTC')::date - 1
$$;
comment on function trunkline_internal.steps_since(uuid) is 'Returns the first day on which a step of a job can have been recorded, so that look-ups need not visit older partitions.';
