-- Encodes a key's value that is followed by more of the name; also encodes the next character of the name within the value.
create or replace function trunkline_internal.limit_value_before(p_value text, p_next text)
returns text
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_end text := left(p_next, 1);
  v_value text := trunkline_internal.limit_value(p_value => p_value);
begin
  if v_end = '' or strpos(v_value, v_end) = 0 then
    return v_value;
  end if;
  return replace(v_value, v_end, (
    select string_agg('%' || upper(lpad(to_hex(get_byte(b.bytes, i.place)), 2, '0')), '' order by i.place)
    from (select convert_to(v_end, 'UTF8') as bytes) as b
    cross join lateral generate_series(0, length(b.bytes) - 1) as i (place)
  ));
end;
$$;
comment on function trunkline_internal.limit_value_before(text, text) is 'Encodes a key''s value that is followed by more of the name; also encodes the next character of the name within the value.';
