-- EX-14: with unique_until claim one job may wait while another one runs; death frees a key in any case.
\ir ../helpers/tools.sql
select plan(7);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'sync', p_unique_until => 'claim') \g /dev/null
select trunkline.register_task(p_task => 'mail') \g /dev/null
select job_id as first from trunkline.enqueue(p_task => 'sync', p_unique_key => 'k') \gset
select is((trunkline.enqueue(p_task => 'sync', p_unique_key => 'k')).created, false, 'while the first waits there is one');
set session authorization trunkline_worker;
select trunkline.claim(p_worker => 'w1') \g /dev/null
set session authorization trunkline_producer;
select job_id as second, created from trunkline.enqueue(p_task => 'sync', p_unique_key => 'k') \gset
select is(:'created'::boolean, true, 'once it runs a second one may wait');
select is((trunkline.enqueue(p_task => 'sync', p_unique_key => 'k')).job_id, :'second'::uuid, 'and that is the holder now');

set session authorization trunkline_worker;
select trunkline.complete(p_worker => 'w1', p_jobs => array[:'first']::uuid[], p_attempts => array[1]) \g /dev/null
set session authorization trunkline_producer;
select is((trunkline.enqueue(p_task => 'sync', p_unique_key => 'k')).job_id, :'second'::uuid, 'the end of the first does not free the key of the second');

select job_id as mail from trunkline.enqueue(p_task => 'mail', p_unique_key => 'm', p_priority => 9) \gset
set session authorization trunkline_worker;
select trunkline.claim(p_worker => 'w1', p_tasks => array['mail']) \g /dev/null
set session authorization trunkline_producer;
select is((trunkline.enqueue(p_task => 'mail', p_unique_key => 'm')).created, false, 'other tasks hold their key while they run');
set session authorization trunkline_worker;
select trunkline.fail(p_worker => 'w1', p_jobs => array[:'mail']::uuid[], p_attempts => array[1], p_retryable => array[false]) \g /dev/null
set session authorization trunkline_producer;
select is((t.job(:'mail')).state, 'dead', 'the job died');
select is((trunkline.enqueue(p_task => 'mail', p_unique_key => 'm')).created, true, 'and its key is free');

select * from finish();
