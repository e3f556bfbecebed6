-- RC-05, RC-06, RC-08: sixteen minutes after their claims, jobs with leases of 5 and 15 minutes are taken back, those of 30 and 60 are not.
\ir ../helpers/tools.sql
select plan(7);

set session authorization trunkline_operator;
select trunkline.set_setting(p_name => 'lease', p_value => '30 minutes') \g /dev/null
select trunkline.set_setting(p_name => 'allow_unknown_tasks', p_value => 'true') \g /dev/null
select trunkline.register_task(p_task => n, p_lease => l::interval)
from (values
  ('protect_document_v2', '5 minutes'), ('document.protected', '5 minutes'), ('run_tsa', '30 minutes'),
  ('submit_anchor_polygon', '60 minutes'), ('submit_anchor_bitcoin', '60 minutes'), ('build_artifact', '15 minutes')
) as x (n, l) \g /dev/null

set session authorization trunkline_worker;
select t.started(n) from unnest(array['protect_document_v2', 'document.protected', 'run_tsa', 'submit_anchor_polygon', 'submit_anchor_bitcoin', 'build_artifact', 'unheard_of']) as n \g /dev/null
select trunkline_test.move_time('16 minutes') \g /dev/null
select results_eq(
  'select task from trunkline.reclaim() order by task',
  $$values ('build_artifact'), ('document.protected'), ('protect_document_v2')$$,
  'three are over their lease'
);
select trunkline_test.move_time('13 minutes 58 seconds') \g /dev/null
select is_empty('select * from trunkline.reclaim()', 'at 29:58 run_tsa is not stale');
select trunkline_test.move_time('3 seconds') \g /dev/null
select results_eq(
  'select task from trunkline.reclaim() order by task',
  $$values ('run_tsa'), ('unheard_of')$$,
  'at 30:01 it is, and so is a task that has the default lease'
);
set session authorization trunkline_operator;
select is((select lease from trunkline.tasks where task = 'unheard_of'), interval '30 minutes', 'which the view of tasks reports');
set session authorization trunkline_worker;
select trunkline_test.move_time('29 minutes 57 seconds') \g /dev/null
select is_empty('select * from trunkline.reclaim()', 'at 59:58 the anchors are not');
select trunkline_test.move_time('3 seconds') \g /dev/null
select results_eq(
  'select task from trunkline.reclaim() order by task',
  $$values ('submit_anchor_bitcoin'), ('submit_anchor_polygon')$$,
  'at 60:01 they are'
);
set session authorization trunkline_reader;
select is((select count(*) from trunkline.reclaim_history), 7::bigint, 'each was taken back once');

select * from finish();
