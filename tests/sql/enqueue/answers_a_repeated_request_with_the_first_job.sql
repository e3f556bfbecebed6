-- EX-14: an idempotency key answers with its first job for a week, also after that has ended.
\ir ../helpers/tools.sql
select plan(11);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select trunkline.register_task(p_task => 'fax') \g /dev/null
select job_id as job, run_at as due from trunkline.enqueue(p_task => 'mail', p_idempotency_key => 'r1', p_delay => '1 minute') \gset
select results_eq(
  $$select * from trunkline.enqueue(p_task => 'mail', p_idempotency_key => 'r1')$$,
  format($$values (%L::uuid, false, 'scheduled', %L::timestamptz)$$, :'job', :'due'),
  'the repeated request gets the first answer'
);
select is((trunkline.enqueue(p_task => 'mail', p_idempotency_key => 'r1', p_tenant => 'acme')).created, true, 'keys belong to a tenant');
select is(
  t.refusal($$select trunkline.enqueue(p_task => 'fax', p_idempotency_key => 'r1')$$) - 'message',
  jsonb_build_object('sqlstate', 'TL027', 'code', 'idempotency_mismatch', 'idempotency_key', 'r1', 'task', 'fax', 'first_task', 'mail', 'job', :'job', 'differs', jsonb_build_array('task')),
  'the key of another task is refused'
);
select job_id as holder from trunkline.enqueue(p_task => 'mail', p_unique_key => 'u') \gset
select is((trunkline.enqueue(p_task => 'mail', p_unique_key => 'u', p_idempotency_key => 'r2')).job_id, :'holder'::uuid, 'with a duplicate the key stands for the job that was there');
select is((trunkline.enqueue(p_task => 'mail', p_idempotency_key => 'r2')).job_id, :'holder'::uuid, 'in repeated requests too');

select trunkline.cancel(p_job => :'job') \g /dev/null
select is((trunkline.enqueue(p_task => 'mail', p_idempotency_key => 'r1')).state, 'cancelled', 'the job may have ended meanwhile');

set session authorization trunkline_worker;
select is(trunkline.sweep_idempotency(), 0, 'no key has expired');
select trunkline_test.move_time('6 days 23 hours') \g /dev/null
set session authorization trunkline_producer;
select is((trunkline.enqueue(p_task => 'mail', p_idempotency_key => 'r1')).created, false, 'for seven days');
select trunkline_test.move_time('2 hours') \g /dev/null
select is((trunkline.enqueue(p_task => 'mail', p_idempotency_key => 'r1')).created, true, 'after that the request is a new one, swept or not');
set session authorization trunkline_worker;
select is(trunkline.sweep_idempotency(), 2, 'the duty removes the expired ones');
select is(t.refusal($$select trunkline.sweep_idempotency(p_limit => 0)$$) ->> 'code', 'limit_out_of_range', 'and is bounded');

select * from finish();
