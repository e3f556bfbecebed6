-- Parses one number or name of a cron field; null if it is neither. The caller checks the range.
-- Accepts at most two digits after leading zeros, so that the cast cannot overflow.
create or replace function trunkline_internal.cron_value(p_text text, p_names text[], p_first integer)
returns integer
language sql
immutable
parallel safe
as $$
  select case
    when p_text ~ '^0*[0-9]{1,2}$' then p_text::integer
    else pg_catalog.array_position(p_names, p_text) - 1 + p_first
  end
$$;
comment on function trunkline_internal.cron_value(text, text[], integer) is 'Parses one number or name of a cron field; null if it is neither. The caller checks the range.';
