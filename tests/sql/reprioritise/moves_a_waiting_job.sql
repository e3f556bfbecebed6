-- CP-28, RF-61: a waiting job can be given another priority and goes to its end; a running or ended one cannot.
\ir ../helpers/tools.sql
select plan(11);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select job_id as a from trunkline.enqueue(p_task => 'mail') \gset
select job_id as b from trunkline.enqueue(p_task => 'mail') \gset
select job_id as c from trunkline.enqueue(p_task => 'mail', p_priority => 5) \gset
select job_id as later from trunkline.enqueue(p_task => 'mail', p_delay => '1 minute') \gset

select is(trunkline.reprioritise(p_job => :'b', p_priority => 5), row(:'b', 'reprioritised', 'ready')::trunkline.changed_job, 'a ready job moves up');
select is(trunkline.reprioritise(p_job => :'c', p_priority => 5), row(:'c', 'unchanged', 'ready')::trunkline.changed_job, 'one that has the priority is left alone');
select is((trunkline.reprioritise(p_job => :'later', p_priority => 9)).state, 'scheduled', 'a scheduled one stays scheduled');
select is((t.event(:'b')).detail, '{"from": 0, "to": 5}'::jsonb, 'the change is an event');

select trunkline_test.move_time('61 seconds') \g /dev/null
set session authorization trunkline_worker;
select is(
  (select array_agg(job_id) from trunkline.claim(p_worker => 'w1', p_limit => 9)),
  array[:'later', :'c', :'b', :'a']::uuid[],
  'the claim follows the new priorities, and in one the older comer'
);
set session authorization trunkline_producer;
select is(
  t.refusal(format('select trunkline.reprioritise(p_job => %L, p_priority => 1)', :'a')) - 'message',
  jsonb_build_object('sqlstate', 'TL019', 'code', 'wrong_state', 'job', :'a', 'state', 'running', 'allowed', array['ready', 'scheduled', 'blocked']),
  'a running job is refused'
);
select is(t.refusal(format('select trunkline.reprioritise(p_job => %L, p_priority => 50)', :'a')) ->> 'code', 'priority_out_of_range', 'so is a priority out of range');
select is(t.refusal(format('select trunkline.reprioritise(p_job => %L, p_priority => null)', :'a')) ->> 'code', 'priority_out_of_range', 'or none');
select is(t.refusal($$select trunkline.reprioritise(p_job => '00000000-0000-7000-8000-000000000000', p_priority => 1)$$) ->> 'code', 'unknown_job', 'and an unknown job');
set session authorization trunkline_worker;
select trunkline.complete(p_worker => 'w1', p_jobs => array[:'a']::uuid[], p_attempts => array[1]) \g /dev/null
select is(t.refusal(format('select trunkline.reprioritise(p_job => %L, p_priority => 1)', :'a')) ->> 'sqlstate', '42501', 'a worker may not');
set session authorization trunkline_operator;
select is(t.refusal(format('select trunkline.reprioritise(p_job => %L, p_priority => 1)', :'a')) ->> 'state', 'completed', 'a completed job is refused with its state');

select * from finish();
