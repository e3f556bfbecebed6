-- RC-38, RF-70: a duty that never ran, or not for long, is late; the last good run of reclaim is watched by the minute.
\ir ../helpers/tools.sql
select plan(9);

set session authorization trunkline_reader;
select results_eq(
  $$select "check", ok from trunkline.health() where "check" like 'duty %' and detail -> 'succeeded_at' = 'null' order by 1$$,
  $$values ('duty advance_workflows', false), ('duty decide_workers', false), ('duty expand_workflows', false), ('duty expire', false), ('duty promote', false), ('duty reclaim', false), ('duty run_schedules', false), ('duty sweep_artifacts', false), ('duty sweep_buckets', false), ('duty sweep_idempotency', false), ('duty sweep_labels', false), ('duty sweep_live', false), ('duty sweep_operator_log', false), ('duty sweep_steps', false), ('duty sweep_workflows', false)$$,
  'what the installation did not run itself is late at first'
);
select trunkline_test.move_time('1 day') \g /dev/null
select is((select ok from trunkline.health() where "check" = 'duty maintain_partitions'), false, 'and what it ran is late a day after');
set session authorization trunkline_worker;
select is((select count(*) from trunkline.run_duties() where ran and error is null), 16::bigint, 'a worker runs them all');
select is_empty($$select * from trunkline.health() where not ok$$, 'then all is well');
select trunkline_test.move_time('59 seconds') \g /dev/null
select is((select ok from trunkline.health() where "check" = 'duty reclaim'), true, 'a minute is no alarm');
select trunkline_test.move_time('2 seconds') \g /dev/null
select is((select ok from trunkline.health() where "check" = 'duty reclaim'), false, 'more than a minute is');
select is((select ok from trunkline.health() where "check" = 'duty maintain_partitions'), true, 'rarer duties have two of their turns');
set session authorization trunkline_operator;
select results_eq('select duty from trunkline.duties where late order by 1', $$values ('advance_workflows'), ('decide_workers'), ('expand_workflows'), ('expire'), ('promote'), ('reclaim'), ('run_schedules'), ('sweep_artifacts'), ('sweep_buckets')$$, 'the view of duties says the same');
select trunkline_test.move_time('1 hour') \g /dev/null
select is((select count(*) from trunkline.duties where late), 16::bigint, 'after an hour all are late again');

select * from finish();
