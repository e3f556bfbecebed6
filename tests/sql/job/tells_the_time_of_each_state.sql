-- CP-17, RC-01, RC-02, RC-14, RF-47: a job has one state out of seven, and a time of the database's clock for every change.
\ir ../helpers/tools.sql
\ir ../../support/internals/internals.sql
select plan(10);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select job_id as job from trunkline.enqueue(p_task => 'mail', p_delay => '1 minute', p_unique_key => 'k') \gset
select ok((j).state = 'scheduled' and (j).run_at = (j).created_at + interval '1 minute', 'scheduled, with the time it is due') from t.job(:'job') as j;

set session authorization trunkline_worker;
select trunkline_test.move_time('1 minute') \g /dev/null
select trunkline.promote() \g /dev/null
select is((t.job(:'job')).state, 'ready', 'ready');
select trunkline_test.move_time('1 minute') \g /dev/null
select trunkline.claim(p_worker => 'w1') \g /dev/null
select ok((j).state = 'running' and (j).claimed_at >= (j).run_at + interval '1 minute', 'running, since its claim') from t.job(:'job') as j;
select trunkline_test.move_time('1 minute') \g /dev/null
select trunkline.heartbeat(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[1]) \g /dev/null
select ok((j).heartbeat_at >= (j).claimed_at + interval '1 minute', 'with the time of its last heartbeat') from t.job(:'job') as j;
select trunkline_test.move_time('1 minute') \g /dev/null
select trunkline.complete(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[1], p_results => array['{"n": 1}'::jsonb]) \g /dev/null
select ok((j).state = 'completed' and (j).finished_at >= (j).claimed_at + interval '2 minutes', 'completed, with the time of its end') from t.job(:'job') as j;
select ok((j).heartbeat_at >= (j).claimed_at + interval '1 minute', 'and its last heartbeat stays as evidence') from t.job(:'job') as j;

set session authorization trunkline_reader;
select results_eq(
  format('select task, queue, unique_key, payload, result, worker, attempt, failures, errors from trunkline.job(p_job => %L)', :'job'),
  $$values ('mail', 'default', 'k', '{}'::jsonb, '{"n": 1}'::jsonb, 'w1', 1, 0, null::jsonb)$$,
  'a reader sees the whole record'
);
select is((select count(*) from trunkline.job(p_job => '00000000-0000-7000-8000-000000000000')), 0::bigint, 'nothing for an unknown id, and no error');

select is(
  (select array_agg(distinct s order by s) from (select from_state as s from t.transitions() union select to_state from t.transitions()) as x),
  array['blocked', 'cancelled', 'completed', 'dead', 'none', 'ready', 'running', 'scheduled'],
  'there are seven states, and none at all'
);
select is_empty(
  $$select * from t.transitions()
    where from_state in ('completed', 'cancelled') and to_state not in ('none', 'blocked', 'cancelled') or (from_state, to_state) = ('completed', 'cancelled')$$,
  'completed and cancelled are final, but for a workflow whose dead job is retried'
);

select * from finish();
