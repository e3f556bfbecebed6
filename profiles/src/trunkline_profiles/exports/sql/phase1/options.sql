-- The options of an export: what is allowed, and the defaults.
-- requires: base, documents
-- source: 2.3, 2.17

create or replace function exports.options_problems(p_options jsonb)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  with fields as (
    select f.key, f.value
    from jsonb_each(case when jsonb_typeof(p_options) = 'object' then p_options else '{}' end) as f
  ),
  sides as (
    select s.key, s.value
    from fields as f
    cross join lateral jsonb_each(case when jsonb_typeof(f.value) = 'object' then f.value else '{}' end) as s
    where f.key = 'margins'
  ),
  problems (field, problem) as (
    select 'options', 'must be an object' where jsonb_typeof(p_options) is distinct from 'object'
    union all
    select left(f.key, 100), 'is not a known option'
    from fields as f
    where f.key not in ('templateSlug', 'pageSize', 'margins', 'quality', 'colorMode')
    union all
    select f.key, 'must be one of ' || array_to_string(c.allowed, ', ')
    from fields as f
    join (
      values
        ('pageSize', '{A4,Letter,Legal}'::text[]), ('quality', '{draft,normal,high}'), ('colorMode', '{color,grayscale}'),
        ('templateSlug', array(select t.slug from exports.templates as t order by t.slug))
    ) as c (key, allowed) on c.key = f.key
    where jsonb_typeof(f.value) <> 'string' or f.value #>> '{}' <> all(c.allowed)
    union all
    select 'margins', 'must be an object with top, bottom, left and right'
    from fields as f
    where f.key = 'margins'
      and (jsonb_typeof(f.value) <> 'object' or not f.value ?& array['top', 'bottom', 'left', 'right'])
    union all
    select 'margins.' || left(s.key, 100), 'must be a number of inches from 0 to 2'
    from sides as s
    where case when jsonb_typeof(s.value) = 'number' then (s.value #>> '{}')::numeric not between 0 and 2 else true end
      or s.key not in ('top', 'bottom', 'left', 'right')
  )
  select jsonb_object_agg(p.field, p.problem) from problems as p
$$;
comment on function exports.options_problems(jsonb) is 'Returns the wrong fields of options with what is wrong; null if nothing is.';

create or replace function exports.full_options(p_options jsonb)
returns jsonb
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select '{
    "templateSlug": "minimal", "pageSize": "Letter", "quality": "normal", "colorMode": "color",
    "margins": {"top": 1, "bottom": 1, "left": 1, "right": 1}
  }'::jsonb || p_options
$$;
comment on function exports.full_options(jsonb) is 'Returns options with the defaults of those that are left out.';

create or replace function exports.checked_options(p_options jsonb)
returns jsonb
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_options jsonb := coalesce(p_options, '{}');
  v_problems jsonb := exports.options_problems(p_options => v_options);
begin
  if v_problems is not null then
    perform exports.refuse(
      p_code => 'invalid_request', p_message => 'the options are not valid',
      p_detail => jsonb_build_object('fields', v_problems)
    );
  end if;
  return exports.full_options(p_options => v_options);
end;
$$;
comment on function exports.checked_options(jsonb) is 'Returns complete options, or refuses them with the fields that are wrong.';

create or replace function exports.dedupe_key(p_document uuid, p_version integer, p_options jsonb, p_batch uuid default null)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  -- The user is not part of it: keys of the engine count within a tenant.
  select 'export:' || encode(
    sha256(convert_to(concat_ws('|', p_document::text, p_version::text, p_options::text, p_batch::text), 'UTF8')), 'hex'
  )
$$;
comment on function exports.dedupe_key(uuid, integer, jsonb, uuid) is 'Returns the key under which an export counts as the same: document, version and options, and the batch if it has one.';
