-- Returns the current value of a setting, as text.
-- PL/pgSQL, because it caches the plan. Before PostgreSQL 18 a SQL function is planned at every call, which costs 60 µs
-- here instead of 3.
create or replace function trunkline_internal.setting(p_name text)
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (select coalesce(s.value, s.default_value) from trunkline_internal.settings as s where s.name = p_name);
end;
$$;
comment on function trunkline_internal.setting(text) is 'Returns the current value of a setting, as text.';
