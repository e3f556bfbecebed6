-- CP-49, EX-14: a dead letter whose unique key was taken meanwhile is not run beside the new holder.
\ir ../helpers/tools.sql
select plan(6);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select job_id as dead from trunkline.enqueue(p_task => 'mail', p_unique_key => 'k') \gset
set session authorization trunkline_worker;
select trunkline.fail(p_worker => 'w1', p_jobs => array[job_id], p_attempts => array[attempt], p_retryable => array[false]) from trunkline.claim(p_worker => 'w1') \g /dev/null
set session authorization trunkline_producer;
select job_id as holder from trunkline.enqueue(p_task => 'mail', p_unique_key => 'k') \gset
select isnt(:'holder'::uuid, :'dead'::uuid, 'a new job has the key');

set session authorization trunkline_operator;
select is(
  t.refusal(format('select trunkline.retry(p_job => %L)', :'dead')) - 'message',
  jsonb_build_object('sqlstate', 'TL018', 'code', 'unique_key_held', 'job', :'dead', 'unique_key', 'k', 'holder', :'holder'),
  'the replay is refused, naming the holder'
);
select is((t.job(:'dead')).state, 'dead', 'the dead letter stays');
select is((t.event(:'dead')).kind, 'failed', 'with no event of a replay');
select trunkline.cancel(p_job => :'holder') \g /dev/null
select is((trunkline.retry(p_job => :'dead')).state, 'ready', 'once the holder has ended it can be run again');
select is((trunkline.enqueue(p_task => 'mail', p_unique_key => 'k')).job_id, :'dead'::uuid, 'and is the holder');

select * from finish();
