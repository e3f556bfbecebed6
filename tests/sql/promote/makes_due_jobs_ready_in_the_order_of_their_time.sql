-- CP-28, EX-17: the duty makes due jobs ready, the earliest first, a bounded number a run.
\ir ../helpers/tools.sql
select plan(8);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select job_id as third from trunkline.enqueue(p_task => 'mail', p_delay => '30 seconds') \gset
select job_id as first from trunkline.enqueue(p_task => 'mail', p_delay => '10 seconds') \gset
select job_id as second from trunkline.enqueue(p_task => 'mail', p_delay => '20 seconds') \gset
select job_id as fourth from trunkline.enqueue(p_task => 'mail', p_delay => '1 hour') \gset

set session authorization trunkline_worker;
select is(trunkline.promote(), 0, 'nothing is due');
select trunkline_test.move_time('31 seconds') \g /dev/null
select is(trunkline.promote(p_limit => 2), 2, 'no more than asked');
select is((t.job(:'third')).state, 'scheduled', 'the latest waits for the next run');
select is(trunkline.promote(p_limit => 2), 1, 'which finds it');
select is(trunkline.promote(), 0, 'then nothing is due any more');
select is(
  (select array_agg(job_id) from trunkline.claim(p_worker => 'w1', p_limit => 9)),
  array[:'first', :'second', :'third']::uuid[],
  'they are claimed in the order of their due times'
);
select is(t.refusal('select trunkline.promote(p_limit => 0)') ->> 'code', 'limit_out_of_range', 'the limit is checked');
set session authorization trunkline_operator;
select is((select rows || ' ' || (succeeded_at is not null)::text from trunkline.duties where duty = 'promote'), '0 true', 'the run is on record');

select * from finish();
