-- RF-47, RC-38: the views of queues and throughput show depth, age, losses and speed without touching a job.
\ir ../helpers/tools.sql
select plan(6);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_queue => 'post', p_lease => '1 hour') \g /dev/null
select trunkline.register_task(p_task => 'page', p_queue => 'fast') \g /dev/null
select t.started('mail') as running \gset
select t.started('mail') as done \gset
select t.dead('mail') as dead \gset
set session authorization trunkline_producer;
select trunkline.enqueue(p_task => 'mail') \g /dev/null
select trunkline.enqueue(p_task => 'mail', p_tenant => 'acme', p_delay => '1 hour') \g /dev/null
select trunkline.cancel(p_job => (trunkline.enqueue(p_task => 'mail')).job_id) \g /dev/null
set session authorization trunkline_worker;
select trunkline_test.move_time('2 minutes') \g /dev/null
select trunkline.complete(p_worker => 'w1', p_jobs => array[:'done']::uuid[], p_attempts => array[1]) \g /dev/null

set session authorization trunkline_reader;
select results_eq(
  $$select queue, paused, ready, scheduled, blocked, running, dead from trunkline.queues order by queue$$,
  $$values ('fast', false, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint), ('post', false, 1, 1, 0, 1, 1)$$,
  'each queue with what waits, runs and died in it'
);
select ok((select oldest_ready_age between interval '2 minutes' and interval '3 minutes' from trunkline.queues where queue = 'post'), 'and the age of its oldest ready job');
select results_eq(
  'select sum(completed)::integer, sum(cancelled)::integer from trunkline.throughput where task = $$mail$$',
  'values (1, 1)',
  'throughput counts what ended'
);
select ok((select mean_run >= interval '2 minutes' from trunkline.throughput where completed = 1), 'and how long it took');
select trunkline_test.move_time('2 hours') \g /dev/null
select is_empty('select * from trunkline.throughput', 'in the last hour');
set trunkline.tenant = 'acme';
select results_eq('select queue, ready, scheduled, dead from trunkline.queues', $$values ('post', 0::bigint, 1::bigint, 0::bigint)$$, 'a tenant sees its own jobs only');

select * from finish();
