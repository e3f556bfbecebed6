-- CP-50, RC-10: where the worker never asks, the end of the lease ends a job that is to be cancelled.
\ir ../helpers/tools.sql
select plan(5);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_lease => '60 seconds') \g /dev/null
select t.started('mail') as job \gset

set session authorization trunkline_producer;
select trunkline.cancel(p_job => :'job', p_reason => 'mistake') \g /dev/null

set session authorization trunkline_worker;
select trunkline_test.move_time('59 seconds') \g /dev/null
select is_empty($$select * from trunkline.reclaim()$$, 'not before the lease is over');
select trunkline_test.move_time('2 seconds') \g /dev/null
select results_eq(
  $$select state, worker from trunkline.reclaim()$$,
  $$values ('cancelled', 'w1')$$,
  'reclaim ends it'
);
select is((t.job(:'job')).state, 'cancelled', 'it does not go back to the queue');
select is((t.job(:'job')).reason, 'mistake', 'the reason of the request is kept');
select is(
  (select verdict from trunkline.complete(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[1])),
  'lost',
  'the silent worker comes too late'
);

select * from finish();
