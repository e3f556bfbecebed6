-- CP-49, RC-22, RF-51: an operator runs a dead letter again: the same job, no failures, and the attempt number goes on.
\ir ../helpers/tools.sql
select plan(15);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail', p_max_attempts => 2, p_backoff => '{"base": 0}') \g /dev/null
select job_id as job from trunkline.enqueue(p_task => 'mail', p_payload => '{"n": 1}', p_priority => 4, p_correlation_id => 'c', p_tags => array['x'], p_unique_key => 'k') \gset
set session authorization trunkline_worker;
select trunkline.fail(p_worker => 'w1', p_jobs => array[job_id], p_attempts => array[attempt]) from trunkline.claim(p_worker => 'w1') \g /dev/null
select trunkline.fail(p_worker => 'w1', p_jobs => array[job_id], p_attempts => array[attempt], p_errors => array['{"message": "no"}'::jsonb]) from trunkline.claim(p_worker => 'w1') \g /dev/null
select is((t.job(:'job')).state, 'dead', 'a dead letter');
select is(t.refusal(format('select trunkline.retry(p_job => %L)', :'job')) ->> 'sqlstate', '42501', 'a worker may not run it again');

set session authorization trunkline_operator;
select * from trunkline.retry(p_job => :'job') \gset
select is(:'job_id'::uuid, :'job'::uuid, 'an operator may, and it is the same job');
select is(:'created'::boolean, false, 'not a new one');
select is((t.job(:'job')).state, 'ready', 'it is ready');
select is((t.job(:'job')).failures, 0, 'with its whole budget');
select results_eq(
  format('select priority, correlation_id, tags, unique_key, max_attempts from trunkline.jobs where job_id = %L', :'job'),
  $$values (4, 'c', array['x'], 'k', 2)$$,
  'and all that it was'
);
select is((t.event(:'job')).kind || ' ' || (t.event(:'job')).actor, 'replayed trunkline_operator', 'who did it is an event');
select is((t.event(:'job')).detail, '{"reason_of_death": "attempts_exhausted", "failures": 2}'::jsonb, 'with what it had died of');
select is_empty('select * from trunkline.dead_letters', 'it is no dead letter any more');
select is((trunkline.enqueue(p_task => 'mail', p_unique_key => 'k')).job_id, :'job'::uuid, 'it holds its unique key again');

set session authorization trunkline_worker;
select results_eq(
  $$select attempt, failures, payload, last_error ->> 'message' from trunkline.claim(p_worker => 'w1')$$,
  $$values (3, 0, '{"n": 1}'::jsonb, 'no')$$,
  'the next attempt is the third: the number is the fence, so it goes on'
);
select is((select verdict from trunkline.complete(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[2])), 'lost', 'an attempt from before the death stays stale');
set session authorization trunkline_operator;
select is(t.refusal(format('select trunkline.retry(p_job => %L)', :'job')) ->> 'state', 'running', 'a running job cannot be run again');
select is(t.refusal($$select trunkline.retry(p_job => '00000000-0000-7000-8000-000000000000')$$) ->> 'code', 'unknown_job', 'nor one that is not there');

select * from finish();
