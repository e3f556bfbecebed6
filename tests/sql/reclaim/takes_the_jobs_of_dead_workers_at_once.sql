-- RC-10, RC-27, CP-31: a worker that misses two pulses is gone, and its jobs with it, except where the task keeps to its lease.
\ir ../helpers/tools.sql
select plan(13);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_lease => '300 seconds') \g /dev/null
select trunkline.register_task(p_task => 'exact', p_lease => '300 seconds', p_reclaim_on_worker_death => false) \g /dev/null
select trunkline.register_worker(p_worker => 'w1') \g /dev/null
select trunkline.register_worker(p_worker => 'w2') \g /dev/null
select t.started('mail') as job \gset
select t.started('exact') as exact \gset
select t.started('mail', 'w2') as alive \gset
select t.started('mail', 'unregistered') as unknown \gset

select trunkline_test.move_time('9 seconds') \g /dev/null
select is_empty('select * from trunkline.reclaim()', 'one missed pulse is no death');
select is(trunkline.pulse(p_worker => 'w2'), 'active', 'the other worker shows that it lives');
select trunkline_test.move_time('2 seconds') \g /dev/null
select results_eq(
  'select job_id, worker, reason from trunkline.reclaim()',
  format($$values (%L::uuid, 'w1', 'worker_gone')$$, :'job'),
  'two missed pulses are: the job is taken back long before its lease is over'
);
select is((t.job(:'alive')).state, 'running', 'not that of a worker that lives');
select is((t.job(:'unknown')).state, 'running', 'nor that of one that never registered');
select is((t.job(:'exact')).state, 'running', 'nor that of a task that keeps to its lease');
select is((t.job(:'job')).last_error ->> 'type', 'worker_gone', 'the error names the cause');
select is(trunkline.pulse(p_worker => 'w1'), 'gone', 'should the worker still live, its pulse tells it that it was given up');
select is((select verdict from trunkline.complete(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[1])), 'lost', 'and its job is lost');
set session authorization trunkline_operator;
select is((select state || ' ' || alive from trunkline.workers where worker = 'w1'), 'gone false', 'the view of workers shows it');

set session authorization trunkline_worker;
select trunkline_test.move_time('280 seconds') \g /dev/null
select trunkline.pulse(p_worker => 'w2') \g /dev/null
select trunkline.heartbeat(p_worker => 'w2', p_jobs => array[:'alive']::uuid[], p_attempts => array[1]) \g /dev/null
select is_empty('select * from trunkline.reclaim()', 'at 291 seconds the exact one is still kept');
select trunkline_test.move_time('10 seconds') \g /dev/null
select trunkline.pulse(p_worker => 'w2') \g /dev/null
select results_eq('select job_id from trunkline.reclaim() order by job_id', format($$values (%L::uuid), (%L)$$, least(:'exact', :'unknown'), greatest(:'exact', :'unknown')), 'at 301 it goes with its lease');
select is((select verdict from trunkline.heartbeat(p_worker => 'w2', p_jobs => array[:'alive']::uuid[], p_attempts => array[1])) = 'ok', true, 'the living worker works on');

select * from finish();
