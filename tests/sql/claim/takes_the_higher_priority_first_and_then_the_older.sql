-- CP-28, RF-61, TA-18, EX-17: jobs leave a queue by priority, larger first, and within one in the order they came.
\ir ../helpers/tools.sql
select plan(5);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select job_id as first from trunkline.enqueue(p_task => 'mail', p_payload => '{"n": 1}') \gset
select job_id as second from trunkline.enqueue(p_task => 'mail', p_payload => '{"n": 2}') \gset
select job_id as bulk from trunkline.enqueue(p_task => 'mail', p_payload => '{"n": 3}', p_priority => -1) \gset
select job_id as urgent from trunkline.enqueue(p_task => 'mail', p_payload => '{"n": 4}', p_priority => 10) \gset
select job_id as last from trunkline.enqueue(p_task => 'mail', p_payload => '{"n": 5}') \gset

set session authorization trunkline_worker;
select is(
  (select array_agg(job_id) from trunkline.claim(p_worker => 'w1', p_limit => 2)),
  array[:'urgent', :'first']::uuid[],
  'the urgent one goes before older ones, then the oldest'
);
select is(
  (select priority from trunkline.claim(p_worker => 'w1')),
  0,
  'a claim of one takes the best'
);

set session authorization trunkline_producer;
select job_id as late from trunkline.enqueue(p_task => 'mail', p_priority => 5) \gset

set session authorization trunkline_worker;
select results_eq(
  $$select payload ->> 'n', priority from trunkline.claim(p_worker => 'w2', p_limit => 10)$$,
  $$values (null, 5), ('5', 0), ('3', -1)$$,
  'the rows of one claim come best first; bulk work comes last'
);
select is_empty($$select * from trunkline.claim(p_worker => 'w2')$$, 'nothing is left');
select is((t.job(:'second')).worker, 'w1', 'each went to one worker');

select * from finish();
