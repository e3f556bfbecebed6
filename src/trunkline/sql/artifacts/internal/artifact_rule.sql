-- Returns what is wrong with the name, kind, content type or step of an artifact; null if nothing is.
create or replace function trunkline_internal.artifact_rule(p_name text, p_kind text, p_content_type text, p_step text)
returns jsonb
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when p_name is null or p_name = '' or length(p_name) > 200 then
      jsonb_build_object('argument', 'p_name', 'must_be', 'a text of 1 to 200 characters')
    when p_name ~ '[/\\]' then
      jsonb_build_object('argument', 'p_name', 'must_be', 'without separators of folders', 'name', left(p_name, 200))
    when btrim(p_name, '. ') = '' then
      jsonb_build_object('argument', 'p_name', 'must_be', 'more than dots and spaces', 'name', left(p_name, 200))
    -- Control characters, and characters that reverse the direction of writing.
    when p_name ~ '[\u0001-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]' then
      jsonb_build_object('argument', 'p_name', 'must_be', 'without control characters')
    when p_kind !~ '^[a-z0-9][a-z0-9_.+-]{0,63}$' then
      jsonb_build_object('argument', 'p_kind', 'must_be', 'lower-case letters, digits and _ . + -, at most 64', 'kind', left(p_kind, 100))
    when p_content_type !~ '^[A-Za-z0-9!#$&^_.+-]{1,100}/[A-Za-z0-9!#$&^_.+-]{1,100}(; ?[A-Za-z0-9_-]{1,50}=[A-Za-z0-9_."-]{1,100})*$' then
      jsonb_build_object('argument', 'p_content_type', 'must_be', 'a media type such as audio/mpeg')
    when p_step = '' or length(p_step) > 1000 then
      jsonb_build_object('argument', 'p_step', 'must_be', 'the name of a step, at most 1000 characters')
  end
$$;
comment on function trunkline_internal.artifact_rule(text, text, text, text) is 'Returns what is wrong with the name, kind, content type or step of an artifact; null if nothing is.';
