-- EX-14, RC-01: a duplicate of a live job returns that job and raises its priority; an ended job is no duplicate.
\ir ../helpers/tools.sql
select plan(15);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail', p_profile => 'post') \g /dev/null
select trunkline.register_task(p_task => 'fax', p_profile => 'post') \g /dev/null
select trunkline.register_task(p_task => 'page', p_profile => 'pager') \g /dev/null
select job_id as other from trunkline.enqueue(p_task => 'mail') \gset
select job_id as job from trunkline.enqueue(p_task => 'mail', p_unique_key => 'k') \gset

select * from trunkline.enqueue(p_task => 'mail', p_unique_key => 'k', p_payload => '{"x": 1}') \gset
select is(:'job_id'::uuid, :'job'::uuid, 'a duplicate gets the live job');
select is(:'created'::boolean, false, 'and is told that none was made');
select is(:'state'::text, 'ready', 'with its state');
select is((t.job(:'job')).payload, '{}'::jsonb, 'the first payload stands');
select is((select count(*) from trunkline.jobs), 2::bigint, 'no second job exists');

select trunkline.enqueue(p_task => 'mail', p_unique_key => 'k', p_priority => 7) \g /dev/null
select is((t.job(:'job')).priority, 7, 'a duplicate with a higher priority raises it');
select trunkline.enqueue(p_task => 'mail', p_unique_key => 'k', p_priority => -3) \g /dev/null
select is((t.job(:'job')).priority, 7, 'one with a lower priority does not lower it');

select is((trunkline.enqueue(p_task => 'fax', p_unique_key => 'k')).created, false, 'the key counts for all tasks of a profile');
select is((trunkline.enqueue(p_task => 'page', p_unique_key => 'k')).created, true, 'but not for another profile');
select is((trunkline.enqueue(p_task => 'mail', p_unique_key => 'k', p_tenant => 'acme')).created, true, 'nor for another tenant');

set session authorization trunkline_worker;
select is((select job_id from trunkline.claim(p_worker => 'w1', p_tasks => array['mail'])), :'job'::uuid, 'the raised one is claimed first');
set session authorization trunkline_producer;
select results_eq(
  $$select job_id, created, state from trunkline.enqueue(p_task => 'mail', p_unique_key => 'k', p_priority => 20)$$,
  format($$values (%L::uuid, false, 'running')$$, :'job'),
  'while it runs it is still the one'
);
set session authorization trunkline_worker;
select trunkline.fail(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[1]) \g /dev/null
set session authorization trunkline_producer;
select is((trunkline.enqueue(p_task => 'mail', p_unique_key => 'k')).state, 'scheduled', 'and while it waits for its next attempt');
set session authorization trunkline_worker;
select trunkline_test.move_time('1 hour') \g /dev/null
select trunkline.complete(p_worker => 'w1', p_jobs => array[job_id], p_attempts => array[attempt])
from trunkline.claim(p_worker => 'w1', p_tasks => array['mail']) \g /dev/null
set session authorization trunkline_producer;
select is((t.job(:'job')).state, 'completed', 'once it has ended');
select is((trunkline.enqueue(p_task => 'mail', p_unique_key => 'k')).created, true, 'a new one is made');

select * from finish();
