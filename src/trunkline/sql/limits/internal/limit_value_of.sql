-- Decodes a key's value taken from the name of a limit; null if it is not validly encoded.
create or replace function trunkline_internal.limit_value_of(p_encoded text)
returns text
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_parts text[];
  v_hex text;
begin
  if strpos(p_encoded, '%') = 0 then
    return p_encoded;
  end if;
  v_parts := string_to_array(p_encoded, '%');
  v_hex := encode(convert_to(v_parts[1], 'UTF8'), 'hex');
  for v_place in 2..cardinality(v_parts) loop
    v_hex := v_hex || left(v_parts[v_place], 2) || encode(convert_to(substr(v_parts[v_place], 3), 'UTF8'), 'hex');
  end loop;
  return convert_from(decode(v_hex, 'hex'), 'UTF8');
exception
  when data_exception then
    return null;
end;
$$;
comment on function trunkline_internal.limit_value_of(text) is 'Decodes a key''s value taken from the name of a limit; null if it is not validly encoded.';
