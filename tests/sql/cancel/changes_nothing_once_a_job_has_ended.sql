-- EX-35: cancelling an ended job changes nothing and says in which state it is.
\ir ../helpers/tools.sql
select plan(5);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select t.started('mail') as done \gset
select trunkline.complete(p_worker => 'w1', p_jobs => array[:'done']::uuid[], p_attempts => array[1], p_results => array['{"n": 1}'::jsonb]) \g /dev/null
select t.dead('mail') as dead \gset

set session authorization trunkline_producer;
select job_id as gone from trunkline.enqueue(p_task => 'mail') \gset
select trunkline.cancel(p_job => :'gone') \g /dev/null

select is(trunkline.cancel(p_job => :'done'), row(:'done', 'ended', 'completed')::trunkline.changed_job, 'completed');
select is(trunkline.cancel(p_job => :'dead'), row(:'dead', 'ended', 'dead')::trunkline.changed_job, 'dead');
select is(trunkline.cancel(p_job => :'gone'), row(:'gone', 'ended', 'cancelled')::trunkline.changed_job, 'cancelled before');
select is((t.job(:'done')).result, '{"n": 1}'::jsonb, 'the result is untouched');
select is(
  t.refusal($$select trunkline.cancel(p_job => '00000000-0000-7000-8000-000000000000')$$) ->> 'code',
  'unknown_job',
  'a job that does not exist is refused'
);
select * from finish();
