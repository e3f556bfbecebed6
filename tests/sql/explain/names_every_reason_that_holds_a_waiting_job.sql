-- EX-36, CP-65: explain says why a waiting job does not run, one row a reason.
\ir ../helpers/tools.sql
select plan(11);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail', p_queue => 'post') \g /dev/null
select job_id as first from trunkline.enqueue(p_task => 'mail') \gset
select job_id as second from trunkline.enqueue(p_task => 'mail') \gset
select job_id as later, run_at as due from trunkline.enqueue(p_task => 'mail', p_delay => '1 hour') \gset

select is((select array_agg(reason) from trunkline.explain(p_job => :'second')), array['no_worker', 'waiting_its_turn'], 'nobody serves it yet');
set session authorization trunkline_worker;
select trunkline.register_worker(p_worker => 'w1', p_queues => array['other']) \g /dev/null
select trunkline.register_worker(p_worker => 'w2', p_tasks => array['fax']) \g /dev/null
set session authorization trunkline_producer;
select is((select array_agg(reason) from trunkline.explain(p_job => :'second')), array['no_worker', 'waiting_its_turn'], 'workers for other queues or tasks do not count');
set session authorization trunkline_worker;
select trunkline.register_worker(p_worker => 'w3', p_queues => array['post'], p_tasks => array['mail']) \g /dev/null
set session authorization trunkline_producer;
select results_eq(
  format('select reason, (detail ->> %L)::integer from trunkline.explain(p_job => %L)', 'ahead', :'second'),
  $$values ('waiting_its_turn', 1)$$,
  'with a worker it waits its turn, behind one'
);
set trunkline.tenant = 'acme';
select job_id as tenants from trunkline.enqueue(p_task => 'mail') \gset
select is((select array_agg(reason) from trunkline.explain(p_job => :'tenants')), array['waiting_its_turn'], 'a tenant, who sees no workers, gets the same answer');
reset trunkline.tenant;

select results_eq(
  format('select reason, until, detail ->> %L from trunkline.explain(p_job => %L)', 'reason', :'later'),
  format($$values ('scheduled', %L::timestamptz, 'not due yet')$$, :'due'),
  'one that is not due, until when'
);
set session authorization trunkline_operator;
select trunkline.pause_queue(p_queue => 'post', p_reason => 'strike') \g /dev/null
select trunkline.set_setting(p_name => 'claims_enabled', p_value => 'false') \g /dev/null
select is(
  (select array_agg(reason) from trunkline.explain(p_job => :'later')),
  array['scheduled', 'claims_disabled', 'queue_paused'],
  'all reasons at once'
);
select is((select detail ->> 'reason' from trunkline.explain(p_job => :'first') where reason = 'queue_paused'), 'strike', 'why the queue is paused');
select trunkline.resume_queue(p_queue => 'post') \g /dev/null
select trunkline.set_setting(p_name => 'claims_enabled', p_value => 'true') \g /dev/null
select trunkline.drain_worker(p_worker => 'w3') \g /dev/null
select is((select array_agg(reason) from trunkline.explain(p_job => :'first')), array['no_worker', 'waiting_its_turn'], 'a draining worker takes nothing more');
set session authorization trunkline_worker;
select trunkline.register_worker(p_worker => 'w4') \g /dev/null
set session authorization trunkline_reader;
select is((select array_agg(reason) from trunkline.explain(p_job => :'first')), array['waiting_its_turn'], 'a worker for everything does');
select trunkline_test.move_time('1 minute') \g /dev/null
select is((select array_agg(reason) from trunkline.explain(p_job => :'first')), array['no_worker', 'waiting_its_turn'], 'but not once it is silent');
select is((select (detail ->> 'ahead')::integer from trunkline.explain(p_job => :'first') where reason = 'waiting_its_turn'), 0, 'the oldest has none ahead');

select * from finish();
