-- CP-28, RF-48: a claim given the position of the one before goes on from there and misses nothing.
\ir ../helpers/tools.sql
select plan(8);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select count(*) from trunkline.enqueue_many((select jsonb_agg('{"task": "mail"}'::jsonb) from generate_series(1, 5))) \g /dev/null

set session authorization trunkline_worker;
select count(job_id) as jobs, (array_agg("position") filter (where "position" is not null))[1] as position, count("position") as positions
from trunkline.claim(p_worker => 'w1', p_limit => 3, p_position => '{}') \gset
select is(:jobs, 3, 'jobs come with a position');
select is(:positions, 1, 'on one row');
select count(job_id) as jobs, (array_agg("position") filter (where "position" is not null))[1] as position
from trunkline.claim(p_worker => 'w1', p_limit => 3, p_position => :'position') \gset
select is(:jobs, 2, 'the next claim goes on after them');
select count(*) as rows, count(job_id) as jobs, (array_agg("position"))[1] as position
from trunkline.claim(p_worker => 'w1', p_limit => 3, p_position => :'position') \gset
select is(:rows || ' row, ' || :jobs || ' jobs', '1 row, 0 jobs', 'an empty claim still answers with a position');

set session authorization trunkline_producer;
select trunkline.enqueue(p_task => 'mail') \g /dev/null
select trunkline.enqueue(p_task => 'mail', p_priority => 3) \g /dev/null
select trunkline.enqueue(p_task => 'mail', p_delay => '1 minute') \g /dev/null
set session authorization trunkline_worker;
select count(job_id) as jobs, (array_agg("position") filter (where "position" is not null))[1] as position
from trunkline.claim(p_worker => 'w1', p_limit => 9, p_position => :'position') \gset
select is(:jobs, 2, 'new jobs are found, in new priorities too');
select trunkline_test.move_time('61 seconds') \g /dev/null
select count(job_id) as jobs, (array_agg("position") filter (where "position" is not null))[1] as position
from trunkline.claim(p_worker => 'w1', p_limit => 9, p_position => :'position') \gset
select is(:jobs, 1, 'so is one that became due');

set session authorization trunkline_producer;
select trunkline.enqueue(p_task => 'mail') \g /dev/null
set session authorization trunkline_worker;
select is(
  (select count(job_id) from trunkline.claim(p_worker => 'w1', p_limit => 9, p_tasks => array['other'], p_position => :'position')),
  0::bigint,
  'a position for other queues or tasks is put aside'
);
select is((select count(*) from trunkline.claim(p_worker => 'w1', p_limit => 9)), 1::bigint, 'without a position a claim looks from the start');

select * from finish();
