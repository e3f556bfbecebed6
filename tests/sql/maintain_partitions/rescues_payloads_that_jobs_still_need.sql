-- RF-50, RF-51: a payload kept apart outlives its day for as long as a waiting, running or dead job needs it.
\ir ../helpers/tools.sql
\ir ../../support/internals/internals.sql
select plan(9);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail', p_lease => '100 days') \g /dev/null
select job_id as running from trunkline.enqueue(p_task => 'mail', p_payload => jsonb_build_object('text', repeat('r', 5000))) \gset
select job_id as dead from trunkline.enqueue(p_task => 'mail', p_payload => jsonb_build_object('text', repeat('d', 5000))) \gset
set session authorization trunkline_worker;
select trunkline.claim(p_worker => 'w1', p_limit => 2) \g /dev/null
select trunkline.fail(p_worker => 'w1', p_jobs => array[:'dead']::uuid[], p_attempts => array[1], p_retryable => array[false]) \g /dev/null
set session authorization trunkline_producer;
select job_id as later from trunkline.enqueue(p_task => 'mail', p_payload => jsonb_build_object('text', repeat('l', 5000)), p_delay => '60 days') \gset
select job_id as ended from trunkline.enqueue(p_task => 'mail', p_payload => jsonb_build_object('text', repeat('e', 5000))) \gset

set session authorization trunkline_worker;
select trunkline_test.move_time('20 days') \g /dev/null
select trunkline.maintain_partitions() \g /dev/null
set session authorization trunkline_producer;
select trunkline.cancel(p_job => :'ended') \g /dev/null
set session authorization trunkline_worker;
select trunkline_test.move_time('12 days') \g /dev/null
select ok(trunkline.maintain_partitions() > 0, 'the day of the payloads is past retention');
select count(trunkline.maintain_partitions()) from generate_series(1, 3) \g /dev/null
select is((select count(*) from t.bodies() where day < (trunkline.clock() at time zone 'UTC')::date - 30), 0::bigint, 'and dropped');
select is((select count(*) from t.bodies()), 4::bigint, 'four payloads were copied to a younger day first');

select is(left((t.job(:'running')).payload ->> 'text', 1), 'r', 'of the running job');
select is(left((t.job(:'dead')).payload ->> 'text', 1), 'd', 'of the dead one');
select is(left((t.job(:'ended')).payload ->> 'text', 1), 'e', 'of one that ended twelve days ago');
select trunkline_test.move_time('28 days 1 hour') \g /dev/null
select is((select left(payload ->> 'text', 1) from trunkline.claim(p_worker => 'w1')), 'l', 'of the one that is claimed two months after it came');
set session authorization trunkline_operator;
select trunkline.retry(p_job => :'dead') \g /dev/null
set session authorization trunkline_worker;
select is((select left(payload ->> 'text', 1) from trunkline.claim(p_worker => 'w1')), 'd', 'and the dead one can be run again with it');
select is(trunkline.maintain_partitions() >= 0, true, 'maintenance goes on');

select * from finish();
