-- RC-25, RC-38, CP-35: a failing reclaim changes nothing, is counted, raises the alarm at the third time in a row, and stops no other duty.
\ir ../helpers/tools.sql
\ir ../../support/internals/internals.sql
select plan(11);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_lease => '60 seconds') \g /dev/null
select t.started('mail') as job \gset
select trunkline.run_duties() \g /dev/null
select trunkline_test.move_time('61 seconds') \g /dev/null

select t.break_reclaim() \g /dev/null

set client_min_messages = error;
select is((select count(*) from trunkline.reclaim()), 0::bigint, 'a failing reclaim is no error for its caller');
select is((t.job(:'job')).state, 'running', 'and changes nothing');
select is((select ok from trunkline.health() where "check" = 'duty reclaim'), false, 'it is late by now');
select trunkline_test.move_time('15 seconds') \g /dev/null
select results_eq(
  'select duty, ran, error is null from trunkline.run_duties() order by duty',
  $$values ('advance_workflows', true, true), ('decide_workers', true, true), ('expand_workflows', true, true), ('expire', true, true), ('maintain_partitions', true, true), ('promote', true, true), ('reclaim', true, false), ('run_schedules', true, true), ('sweep_artifacts', true, true), ('sweep_buckets', true, true), ('sweep_live', true, true)$$,
  'the other duties run all the same'
);
select trunkline_test.move_time('15 seconds') \g /dev/null
select trunkline.reclaim() \g /dev/null
set session authorization trunkline_operator;
select results_eq(
  $$select failures, failures_in_a_row, last_error ->> 'sqlstate' from trunkline.duties where duty = 'reclaim'$$,
  $$values (3::bigint, 3, '42883')$$,
  'three failures are on record'
);
select is((select (detail ->> 'failures_in_a_row')::integer from trunkline.health() where "check" = 'duty reclaim' and not ok), 3, 'and raise the alarm');

select t.repair_reclaim() \g /dev/null
set session authorization trunkline_worker;
select is((select state from trunkline.reclaim()), 'scheduled', 'the next good run takes the job back');
select is((select ok from trunkline.health() where "check" = 'duty reclaim'), true, 'and ends the alarm');
set session authorization trunkline_operator;
select results_eq(
  $$select failures, failures_in_a_row, last_error from trunkline.duties where duty = 'reclaim'$$,
  $$values (3::bigint, 0, null::jsonb)$$,
  'only the count remains'
);
select is((t.job(:'job')).failures, 1, 'the job was lost once');
select is((select count(*) from trunkline.reclaim_history), 1::bigint, 'with one event');

select * from finish();
