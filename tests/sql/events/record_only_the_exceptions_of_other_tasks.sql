-- CP-46, RC-17: without audit a job that goes well leaves no event, and every exception leaves one.
\ir ../helpers/tools.sql
select plan(4);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_lease => '60 seconds', p_max_attempts => 3) \g /dev/null
select t.started('mail') as well \gset
select trunkline.complete(p_worker => 'w1', p_jobs => array[:'well']::uuid[], p_attempts => array[1]) \g /dev/null
select t.started('mail') as ill \gset
select trunkline.snooze(p_worker => 'w1', p_jobs => array[:'ill']::uuid[], p_attempts => array[1], p_delays => array[interval '0']) \g /dev/null
select trunkline.claim(p_worker => 'w1') \g /dev/null
select trunkline.release(p_worker => 'w1', p_jobs => array[:'ill']::uuid[], p_attempts => array[2]) \g /dev/null
select trunkline.claim(p_worker => 'w1') \g /dev/null
select trunkline.fail(p_worker => 'w1', p_jobs => array[:'ill']::uuid[], p_attempts => array[3], p_delays => array[interval '0']) \g /dev/null
select trunkline.claim(p_worker => 'w1') \g /dev/null
select trunkline_test.move_time('61 seconds') \g /dev/null
select trunkline.reclaim() \g /dev/null
select trunkline_test.move_time('61 seconds') \g /dev/null
set session authorization trunkline_producer;
select trunkline.reprioritise(p_job => :'ill', p_priority => 3) \g /dev/null
set session authorization trunkline_worker;
select trunkline.claim(p_worker => 'w1') \g /dev/null
select trunkline.fail(p_worker => 'w1', p_jobs => array[:'ill']::uuid[], p_attempts => array[5]) \g /dev/null
set session authorization trunkline_operator;
select trunkline.acknowledge(p_job => :'ill') \g /dev/null
select trunkline.retry(p_job => :'ill') \g /dev/null
select trunkline.cancel(p_job => :'ill') \g /dev/null

select is_empty(format('select * from trunkline.events where job_id = %L', :'well'), 'nothing exceptional, no event');
select results_eq(
  format('select kind, to_state, attempt from trunkline.events where job_id = %L order by at', :'ill'),
  $$values
    ('snoozed', 'scheduled', 1), ('released', 'ready', 2), ('failed', 'scheduled', 3), ('lost', 'scheduled', 4),
    ('reprioritised', 'scheduled', 4), ('failed', 'dead', 5), ('acknowledged', 'dead', 5), ('replayed', 'ready', 5),
    ('cancelled', 'cancelled', 5)$$,
  'one event for each exception'
);
select is(
  (select detail - 'reason_of_death' from trunkline.events where kind = 'replayed'),
  '{"failures": 3}'::jsonb,
  'a replay tells how many failures were forgiven'
);
select ok((select bool_and(e.at = j.finished_at) from trunkline.events as e join trunkline.jobs as j using (job_id) where e.kind = 'cancelled'), 'event and job agree on the time');

select * from finish();
