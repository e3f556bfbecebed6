-- Settings with their current value and its origin.
create or replace view trunkline.settings with (security_barrier = true) as
select
  s.name,
  coalesce(s.value, s.default_value) as value,
  case when s.value is null then 'default' else 'operator' end as origin,
  s.kind,
  s.default_value,
  s.minimum,
  s.maximum,
  s.description,
  s.updated_at,
  s.updated_by
from trunkline_internal.settings as s;
comment on view trunkline.settings is 'Settings with their current value and its origin.';
