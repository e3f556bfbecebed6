-- Returns whether a position has the form that claim returns. Any other is ignored, which loses nothing.
create or replace function trunkline_internal.position_is_sound(p_position jsonb)
returns boolean
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if jsonb_typeof(p_position -> 'lanes') is distinct from 'object'
    or jsonb_path_exists(p_position, 'strict $.lanes.* ? (@.type() != "array" || @.size() < 1)', '{}', true)
    or jsonb_path_exists(p_position, '$.lanes.*[*] ? (@.type() != "number" || @ < 0 || @ > 9000000000000000000)')
    or jsonb_path_exists(p_position, '$.lanes.*[0 to 2] ? (@.floor() != @)', '{}', true)
  then
    return false;
  end if;
  if not p_position ? 'late' then
    return true;
  end if;
  return jsonb_typeof(p_position -> 'late') = 'object'
    and not jsonb_path_exists(p_position, 'strict $.late.* ? (@.type() != "object")', '{}', true)
    and not jsonb_path_exists(p_position, '$.late.keyvalue() ? (!(@.key like_regex "^[0-9]{1,18}$"))', '{}', true)
    and not jsonb_path_exists(
      p_position, '$.late.*.* ? (@.type() != "number" || @ < 0 || @ > 9000000000000000000 || @.floor() != @)', '{}', true
    );
end;
$$;
comment on function trunkline_internal.position_is_sound(jsonb) is
  'Returns whether a position has the form that claim returns. Any other is ignored, which loses nothing.';
