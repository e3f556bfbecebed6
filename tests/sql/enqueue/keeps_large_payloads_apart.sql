-- CP-27, RF-48: a large payload is written once, apart from the job, and returned whole wherever the job is.
\ir ../helpers/tools.sql
\ir ../../support/internals/internals.sql
select plan(9);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select job_id as large from trunkline.enqueue(p_task => 'mail', p_payload => jsonb_build_object('text', repeat('x', 20000))) \gset
select job_id as many from trunkline.enqueue_many(jsonb_build_array(jsonb_build_object('task', 'mail', 'payload', jsonb_build_object('text', repeat('y', 3000))))) \gset
select job_id as small from trunkline.enqueue(p_task => 'mail', p_payload => '{"text": "z"}') \gset

select is(length((t.job(:'large')).payload ->> 'text'), 20000, 'while it waits');
select is(length((t.job(:'many')).payload ->> 'text'), 3000, 'from a batch too');

set session authorization trunkline_worker;
select results_eq(
  $$select length(payload ->> 'text') from trunkline.claim(p_worker => 'w1', p_limit => 3)$$,
  $$values (20000), (3000), (1)$$,
  'claim returns large and small ones'
);
select is(length((t.job(:'large')).payload ->> 'text'), 20000, 'while it runs');
select trunkline.fail(p_worker => 'w1', p_jobs => array[:'large']::uuid[], p_attempts => array[1], p_retryable => array[false]) \g /dev/null
select trunkline.complete(p_worker => 'w1', p_jobs => array[:'many']::uuid[], p_attempts => array[1]) \g /dev/null
select is(length((t.job(:'large')).payload ->> 'text'), 20000, 'when it is dead');
select is(length((t.job(:'many')).payload ->> 'text'), 3000, 'when it is completed');

select is((select count(*) from t.bodies()), 2::bigint, 'each is written once');
set session authorization trunkline_operator;
select trunkline.discard(p_job => :'large') \g /dev/null
select is((select array_agg(job_id) from t.bodies()), array[:'many']::uuid[], 'and goes with a discarded job');
select is((t.job(:'small')).payload, '{"text": "z"}'::jsonb, 'small ones stay with their job');

select * from finish();
