-- CP-35, RC-26, RC-27, RF-70: whoever is there runs what is due; a lost job comes back within fifteen seconds of its lease, workers or not.
\ir ../helpers/tools.sql
select plan(9);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_lease => '300 seconds') \g /dev/null
select t.started('mail') as job \gset
set session authorization trunkline_operator;
select trunkline_test.move_time('290 seconds') \g /dev/null
select results_eq(
  'select duty, ran, error from trunkline.run_duties() order by duty',
  $$values ('advance_workflows', true, null), ('decide_workers', true, null), ('expand_workflows', true, null), ('expire', true, null), ('maintain_partitions', true, null), ('promote', true, null), ('reclaim', true, null), ('run_schedules', true, null), ('sweep_artifacts', true, null), ('sweep_buckets', true, null), ('sweep_idempotency', true, null), ('sweep_labels', true, null), ('sweep_live', true, null), ('sweep_operator_log', true, null), ('sweep_steps', true, null), ('sweep_workflows', true, null)$$,
  'an operator runs them all, with no worker around'
);
select is_empty('select * from trunkline.run_duties() where duty <> $$run_schedules$$', 'at once after it none is due');
select trunkline_test.move_time('6 seconds') \g /dev/null
select set_eq('select duty from trunkline.run_duties()', array['advance_workflows', 'expand_workflows', 'expire', 'promote', 'run_schedules', 'sweep_buckets'], 'each has its own turn');
select is((select every from trunkline.duties where duty = 'reclaim'), interval '15 seconds', 'reclaim has its every fifteen seconds');
select trunkline_test.move_time('10 seconds') \g /dev/null
select is((select rows from trunkline.run_duties() where duty = 'reclaim'), 1, 'so the job is taken back six seconds after its lease');
select is((t.job(:'job')).state, 'scheduled', 'and waits');
select trunkline_test.move_time('61 seconds') \g /dev/null
select is((select rows from trunkline.run_duties() where duty = 'promote'), 1, 'then it is made ready');
select is((t.job(:'job')).state, 'ready', 'without any claim');
set session authorization trunkline_reader;
select is(t.refusal('select trunkline.run_duties()') ->> 'sqlstate', '42501', 'a reader runs nothing');

select * from finish();
