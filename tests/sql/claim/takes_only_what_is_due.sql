-- CP-28, TA-17, EX-17: what is not due, and what is blocked, is not claimed; what became due is, without any duty.
\ir ../helpers/tools.sql
\ir ../../support/internals/internals.sql
select plan(8);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select job_id as later, state from trunkline.enqueue(p_task => 'mail', p_delay => '10 seconds') \gset
select job_id as soon from trunkline.enqueue(p_task => 'mail', p_run_at => trunkline.clock() + interval '5 seconds') \gset
select job_id as past, state as past_state from trunkline.enqueue(p_task => 'mail', p_run_at => trunkline.clock() - interval '1 day') \gset
select is(:'state'::text, 'scheduled', 'a job with a delay is scheduled');
select is(:'past_state'::text, 'ready', 'a job of the past is ready');

-- Dependencies come with workflows; the state they use is the engine's already.
select t.let_wait('00000000-0000-7000-8000-000000000001', p_state => 'blocked') \g /dev/null

set session authorization trunkline_worker;
select results_eq(
  $$select job_id from trunkline.claim(p_worker => 'w1', p_limit => 10)$$,
  array[:'past']::uuid[],
  'only the job that is due is claimed'
);
select trunkline_test.move_time('4 seconds') \g /dev/null
select is_empty($$select * from trunkline.claim(p_worker => 'w1', p_limit => 10)$$, 'a second before it is due it is not claimed');
select trunkline_test.move_time('2 seconds') \g /dev/null
select results_eq(
  $$select job_id from trunkline.claim(p_worker => 'w1', p_limit => 10)$$,
  array[:'soon']::uuid[],
  'a second after it is'
);
select trunkline_test.move_time('1 hour') \g /dev/null
select results_eq(
  $$select job_id from trunkline.claim(p_worker => 'w1', p_limit => 10)$$,
  array[:'later']::uuid[],
  'the other one in its time'
);
select is((t.job('00000000-0000-7000-8000-000000000001')).state, 'blocked', 'a blocked job stays');
select is_empty($$select * from trunkline.claim(p_worker => 'w1', p_limit => 10)$$, 'nothing else is claimed');

select * from finish();
