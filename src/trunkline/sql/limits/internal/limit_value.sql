-- Encodes a key's value for the name of a limit: %, / and braces as %25, %2F, %7B and %7D; ordinary values stay as they are.
-- Without it the values acme and eu/gpt of one name would share a count with acme/eu and gpt.
create or replace function trunkline_internal.limit_value(p_value text)
returns text
language sql
immutable
parallel safe
as $$
  select case
    when pg_catalog.translate(p_value, '%/{}', '') = p_value then p_value
    else pg_catalog.replace(
      pg_catalog.replace(pg_catalog.replace(pg_catalog.replace(p_value, '%', '%25'), '/', '%2F'), '{', '%7B'), '}', '%7D'
    )
  end
$$;
comment on function trunkline_internal.limit_value(text) is 'Encodes a key''s value for the name of a limit: %, / and braces as %25, %2F, %7B and %7D; ordinary values stay as they are.';
