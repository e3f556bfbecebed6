-- Gives the place of what a quota counts in a job's need: 1 requests, 2 tokens, 3 units.
create or replace function trunkline_internal.quota_part(p_unit text)
returns integer
language sql
immutable
parallel safe
as $$
  select case p_unit when 'requests' then 1 when 'tokens' then 2 else 3 end
$$;
comment on function trunkline_internal.quota_part(text) is 'Gives the place of what a quota counts in a job''s need: 1 requests, 2 tokens, 3 units.';
