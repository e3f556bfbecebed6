-- Gives the value of a setting in force, as text.
create or replace function trunkline_internal.setting(p_name text)
returns text
language sql
stable
as $$
  select coalesce(s.value, s.default_value) from trunkline_internal.settings as s where s.name = p_name
$$;
comment on function trunkline_internal.setting(text) is 'Gives the value of a setting in force, as text.';
