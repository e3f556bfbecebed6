-- RC-34, RC-35, RC-36, RC-37: running jobs are healthy below their lease, stale from it on, critical from twice of it on; operators see it.
\ir ../helpers/tools.sql
select plan(14);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_lease => '100 seconds') \g /dev/null
select t.started('mail') as job \gset
set session authorization trunkline_operator;
select trunkline_test.move_time('50 seconds') \g /dev/null
select results_eq(
  'select task, worker, attempt, lease, health, round(ratio, 1), heartbeat_age, extract(epoch from age)::integer from trunkline.stale_monitor',
  $$values ('mail', 'w1', 1, interval '100 seconds', 'healthy', 0.5, null::interval, 50)$$,
  'healthy half-way'
);
select trunkline_test.move_time('49 seconds') \g /dev/null
select is((select health from trunkline.stale_monitor), 'healthy', 'healthy a second before its lease is over');
select trunkline_test.move_time('1 second') \g /dev/null
select is((select health from trunkline.stale_monitor), 'stale', 'stale from then on');
select is_empty('select * from trunkline.stale_validation', 'which reclaim is expected to see to');
select trunkline_test.move_time('99 seconds') \g /dev/null
select is((select health from trunkline.stale_monitor), 'stale', 'stale a second before twice its lease');
select trunkline_test.move_time('1 second') \g /dev/null
select is((select health from trunkline.stale_monitor), 'critical', 'critical from then on');
select results_eq('select job_id, worker from trunkline.stale_validation', format($$values (%L::uuid, 'w1')$$, :'job'), 'that should never be: the validation shows it');

set session authorization trunkline_worker;
select trunkline.heartbeat(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[1]) \g /dev/null
set session authorization trunkline_reader;
select is((select health from trunkline.stale_monitor where heartbeat_age < interval '5 seconds' and age >= interval '200 seconds'), 'healthy', 'a heartbeat makes it healthy however old it is');
select is_empty('select * from trunkline.stale_validation', 'and the validation empty');
set trunkline.tenant = 'acme';
select is_empty('select * from trunkline.stale_monitor', 'a tenant does not see the jobs of others');
reset trunkline.tenant;

set session authorization trunkline_producer;
select is(t.refusal('select * from trunkline.stale_monitor') ->> 'sqlstate', '42501', 'producers do not read the monitor');
select is(t.refusal('select * from trunkline.stale_validation') ->> 'sqlstate', '42501', 'the validation');
select is(t.refusal('select * from trunkline.reclaim_history') ->> 'sqlstate', '42501', 'or the history');
set session authorization trunkline_worker;
select is(t.refusal('select * from trunkline.stale_monitor') ->> 'sqlstate', '42501', 'nor do workers');

select * from finish();
