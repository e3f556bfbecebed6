-- RC-18: with lost_backoff a lost job waits by its back-off: 10 seconds, doubling, up to ten minutes.
\ir ../helpers/tools.sql
select plan(5);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'anchor', p_lease => '60 seconds', p_max_attempts => 10, p_lost_backoff => true, p_backoff => '{"base": 10, "factor": 2, "cap": 600, "jitter": 0.2}') \g /dev/null
select t.started('anchor') as job \gset
select trunkline_test.move_time('61 seconds') \g /dev/null
select trunkline.reclaim() \g /dev/null
select ok(t.delay(:'job') between 8 and 12, 'the first time ten seconds, a fifth more or less');
select trunkline_test.move_time('12 seconds') \g /dev/null
select trunkline.claim(p_worker => 'w1') \g /dev/null
select trunkline_test.move_time('61 seconds') \g /dev/null
select trunkline.reclaim() \g /dev/null
select ok(t.delay(:'job') between 16 and 24, 'then twenty');
select trunkline_test.move_time('24 seconds') \g /dev/null
select trunkline.claim(p_worker => 'w1') \g /dev/null
select trunkline_test.move_time('61 seconds') \g /dev/null
select trunkline.reclaim() \g /dev/null
select ok(t.delay(:'job') between 32 and 48, 'then forty');
select is((t.job(:'job')).failures, 3, 'three attempts were lost');

select trunkline.register_task(p_task => 'anchor', p_backoff => '{"base": 0}') \g /dev/null
select trunkline_test.move_time('48 seconds') \g /dev/null
select trunkline.claim(p_worker => 'w1') \g /dev/null
select trunkline_test.move_time('61 seconds') \g /dev/null
select trunkline.reclaim() \g /dev/null
select is(t.delay(:'job'), 0::numeric, 'a base of zero brings it back at once');

select * from finish();
