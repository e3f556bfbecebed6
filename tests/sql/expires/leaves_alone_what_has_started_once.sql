-- T19: retries, handed-back jobs and replays do not expire; a new priority keeps the deadline.
\ir ../helpers/tools.sql
select plan(10);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail', p_max_attempts => 3) \g /dev/null
select job_id as failed from trunkline.enqueue(p_task => 'mail', p_expires_at => trunkline.clock() + interval '1 minute') \gset
set session authorization trunkline_worker;
select is((select c.job_id from trunkline.claim(p_worker => 'w1') as c), :'failed'::uuid, 'it starts in time');
select trunkline.fail(
  p_worker => 'w1', p_jobs => array[:'failed'::uuid], p_attempts => array[1], p_errors => array['{"message": "no"}'::jsonb]
) \g /dev/null
select isnt((t.job(:'failed')).expires_at, null, 'a retry shows the deadline');
select trunkline_test.move_time('2 hours') \g /dev/null
set session authorization trunkline_operator;
select ok((select d.ran from trunkline.run_duties() as d where d.duty = 'expire'), 'the duty runs');
set session authorization trunkline_worker;
select is((select c.job_id from trunkline.claim(p_worker => 'w1') as c), :'failed'::uuid, 'but starts after it');
select trunkline.fail(
  p_worker => 'w1', p_jobs => array[:'failed'::uuid], p_attempts => array[2],
  p_errors => array['{"message": "no"}'::jsonb], p_retryable => array[false]
) \g /dev/null
select is((t.job(:'failed')).state, 'dead', 'it dies');
set session authorization trunkline_operator;
select is((trunkline.retry(p_job => :'failed')).state, 'ready', 'a person replays it');
select * from trunkline.run_duties() \g /dev/null
set session authorization trunkline_worker;
select is((select c.job_id from trunkline.claim(p_worker => 'w1') as c), :'failed'::uuid, 'and it starts');

set session authorization trunkline_producer;
select job_id as moved from trunkline.enqueue(p_task => 'mail', p_expires_at => trunkline.clock() + interval '1 minute') \gset
set session authorization trunkline_operator;
select is((trunkline.reprioritise(p_job => :'moved', p_priority => 5)).outcome, 'reprioritised', 'another priority');
select trunkline_test.move_time('2 minutes') \g /dev/null
set session authorization trunkline_worker;
select is((select count(*) from trunkline.claim(p_worker => 'w1')), 0::bigint, 'does not make a job start late');
set session authorization trunkline_operator;
select is((trunkline.retry(p_job => :'moved')).created, true, 'an expired job can be run again as a new one');

select * from finish();
