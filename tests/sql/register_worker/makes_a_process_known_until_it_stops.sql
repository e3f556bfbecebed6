-- RC-27: a worker is a row that is alive while its pulse comes; one that stopped by itself is no death.
\ir ../helpers/tools.sql
select plan(12);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select trunkline.register_worker(
  p_worker => 'w1', p_queues => array['default'], p_tasks => array['mail'], p_host => 'h', p_pid => 7, p_version => '1', p_detail => '{"slots": 4}'
) \g /dev/null
select t.started('mail') as job \gset
set session authorization trunkline_operator;
select results_eq(
  'select state, alive, running, host, pid, version, queues, tasks, detail, pulse_interval from trunkline.workers',
  $$values ('active', true, 1::bigint, 'h', 7, '1', array['default'], array['mail'], '{"slots": 4}'::jsonb, interval '5 seconds')$$,
  'the view of workers shows it, with what it runs'
);
select trunkline_test.move_time('9 seconds') \g /dev/null
select is((select alive from trunkline.workers), true, 'one missed pulse is no death');
select trunkline_test.move_time('2 seconds') \g /dev/null
select is((select alive from trunkline.workers), false, 'two are');
set session authorization trunkline_worker;
select is(trunkline.pulse(p_worker => 'w1', p_detail => '{"slots": 5}'), 'active', 'a pulse before anybody noticed revives it');
set session authorization trunkline_operator;
select is((select detail from trunkline.workers where alive), '{"slots": 5}'::jsonb, 'and may bring news');

set session authorization trunkline_worker;
select trunkline.stop_worker(p_worker => 'w1') \g /dev/null
select trunkline_test.move_time('1 minute') \g /dev/null
select is_empty('select * from trunkline.reclaim()', 'a worker that stopped by itself is not dead: its job has its lease');
select is(trunkline.pulse(p_worker => 'w1'), 'stopped', 'a stopped worker is told so');
select is(t.refusal($$select trunkline.stop_worker(p_worker => 'w9')$$) ->> 'code', 'unknown_worker', 'stopping an unknown one is refused');
select is(t.refusal($$select trunkline.pulse(p_worker => 'w9')$$) ->> 'code', 'unknown_worker', 'so is its pulse');
select is(t.refusal($$select trunkline.register_worker(p_worker => '')$$) ->> 'code', 'worker_required', 'a worker has a name');
select is(t.refusal($$select trunkline.register_worker(p_worker => 'w2', p_pulse_interval => '0')$$) ->> 'argument', 'p_pulse_interval', 'and a pulse');

select trunkline.complete(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[1]) \g /dev/null
select trunkline_test.move_time('25 hours') \g /dev/null
select trunkline.reclaim() \g /dev/null
set session authorization trunkline_reader;
select is_empty('select * from trunkline.workers', 'a day later it is forgotten');

select * from finish();
