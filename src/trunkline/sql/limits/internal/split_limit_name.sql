-- Returns the value of each key in a filled-in limit name, or null if the name does not match p_template.
create or replace function trunkline_internal.split_limit_name(p_template text, p_name text)
returns jsonb
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_keys text[] := array(select m.found[1] from regexp_matches(p_template, '[{]([^{}]+)[}]', 'g') as m (found));
  v_last integer := cardinality(v_keys);
  v_rest text;
  v_texts text[] := regexp_split_to_array(p_template, '[{][^{}]+[}]');
  v_value text;
  v_values jsonb := '{}'::jsonb;
begin
  if not starts_with(p_name, v_texts[1]) then
    return null;
  end if;
  v_rest := substr(p_name, length(v_texts[1]) + 1);
  for v_place in 1..v_last loop
    -- The last value ends where the rest of the template begins; other values end at the template's next character.
    v_value := case
      when v_place = v_last then left(v_rest, greatest(length(v_rest) - length(v_texts[v_place + 1]), 0))
      else left(v_rest, greatest(strpos(v_rest, left(v_texts[v_place + 1], 1)) - 1, 0))
    end;
    if v_value = '' or v_value ~ '[/{}]' then
      return null;
    end if;
    v_values := v_values || jsonb_build_object(v_keys[v_place], trunkline_internal.limit_value_of(p_encoded => v_value));
    v_rest := substr(v_rest, length(v_value) + 1);
    if not starts_with(v_rest, v_texts[v_place + 1]) then
      return null;
    end if;
    v_rest := substr(v_rest, length(v_texts[v_place + 1]) + 1);
  end loop;
  return case when v_rest = '' then v_values end;
end;
$$;
comment on function trunkline_internal.split_limit_name(text, text) is 'Returns the value of each key in a filled-in limit name, or null if the name does not match p_template.';
