-- Returns the length in bytes of the longest text in a list, or null. Separate, because a subquery would keep request_fault from being inlined.
create or replace function trunkline_internal.longest_text(p_texts text[])
returns integer
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (select max(octet_length(t.text)) from unnest(p_texts) as t (text));
end;
$$;
comment on function trunkline_internal.longest_text(text[]) is 'Returns the length in bytes of the longest text in a list, or null. Separate, because a subquery would keep request_fault from being inlined.';
