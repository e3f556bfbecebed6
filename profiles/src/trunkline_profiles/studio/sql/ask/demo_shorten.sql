-- For the demonstration: a dead worker's tasks are back within seconds, and the catalogue has as many documents as asked for.

with types as (
  update studio.task_types as t set lease = '3 seconds' returning t.task_type
),
documents as (
  delete from studio.documents as d where d.document > %(documents)s returning d.document
)
select
  trunkline.set_setting(p_name => 'pulse_interval', p_value => '1 second'),
  trunkline.set_limit(p_limit => 'studio-model', p_parts => %(limit)s::jsonb),
  (select count(*) from types), (select count(*) from documents)
