-- RC-10, RC-16, CP-36, RF-69: one run takes back at most 500 jobs, the longest lost first, and the next ones the rest.
\ir ../helpers/tools.sql
select plan(10);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail', p_lease => '60 seconds') \g /dev/null
select count(*) from trunkline.enqueue_many((select jsonb_agg('{"task": "mail"}'::jsonb) from generate_series(1, 1010))) \g /dev/null
set session authorization trunkline_worker;
select count(*) from trunkline.claim(p_worker => 'w1', p_limit => 5) \g /dev/null
select trunkline_test.move_time('1 second') \g /dev/null
select count(*) from trunkline.claim(p_worker => 'w2', p_limit => 1005) \g /dev/null
select trunkline_test.move_time('61 seconds') \g /dev/null

select is((select array_agg(worker) from trunkline.reclaim(p_limit => 5)), array_fill('w1'::text, array[5]), 'no more than asked, the longest lost first');
select is((select count(*) from trunkline.reclaim()), 500::bigint, 'five hundred when nothing is said');
select is((select count(*) from trunkline.reclaim()), 500::bigint, 'the next run goes on');
select is((select count(*) from trunkline.reclaim()), 5::bigint, 'until all are done');
select is((select count(*) from trunkline.reclaim()), 0::bigint, 'and no job is handled twice');
set session authorization trunkline_operator;
select is((select count(*) || ' ' || count(distinct job_id) from trunkline.reclaim_history), '1010 1010', 'each has exactly one event');
select is((select failures from trunkline.jobs group by failures), 1::integer, 'and one failure');
select is((select rows || ' ' || runs from trunkline.duties where duty = 'reclaim'), '0 5', 'the runs are on record');
select is(t.refusal('select trunkline.reclaim(p_limit => 0)') ->> 'code', 'limit_out_of_range', 'the limit is checked');
select is(t.refusal('select trunkline.reclaim(p_limit => 10001)') ->> 'maximum', '10000', 'both ways');

select * from finish();
