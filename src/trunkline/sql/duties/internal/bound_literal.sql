-- Writes a partition bound in the type of its table: a day for bodies and recorded steps, a time in UTC for the others.
create or replace function trunkline_internal.bound_literal(p_parent text, p_bound timestamptz)
returns text
language sql
stable
as $$
  select case
    when p_parent in ('bodies', 'recorded_steps') then pg_catalog.to_char(p_bound at time zone 'UTC', 'YYYY-MM-DD')
    else pg_catalog.to_char(p_bound at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') || '+00'
  end
$$;
comment on function trunkline_internal.bound_literal(text, timestamptz) is 'Writes a partition bound in the type of its table: a day for bodies and recorded steps, a time in UTC for the others.';
