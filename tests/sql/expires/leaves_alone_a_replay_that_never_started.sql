-- T19: a dead letter without an attempt that a person replays does not expire.
\ir ../helpers/tools.sql
select plan(4);

set session authorization trunkline_operator;
select trunkline.set_limit('api', '{"tokens_per_minute": 1000}') \g /dev/null
set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'call', p_limits => '{api}', p_dead_when_deferred => true) \g /dev/null
select job_id as large from trunkline.enqueue(
  p_task => 'call', p_cost => '{"tokens": 1000}', p_expires_at => trunkline.clock() + interval '3 days'
) \gset

set session authorization trunkline_operator;
select trunkline.set_limit('api', '{"tokens_per_minute": 900}') \g /dev/null
select trunkline_test.move_time('2 days') \g /dev/null
select * from trunkline.run_duties() \g /dev/null
select is((t.job(:'large')).state || ' ' || (t.job(:'large')).attempt, 'dead 0', 'a job that was set aside dies without an attempt');
select isnt((t.job(:'large')).expires_at, null, 'the dead letter still shows when it expires');
select trunkline_test.move_time('2 days') \g /dev/null
select trunkline.set_limit('api', '{"tokens_per_minute": 1000}') \g /dev/null
select is((trunkline.retry(p_job => :'large')).state, 'ready', 'a person replays it after that time');
set session authorization trunkline_worker;
select is((select c.job_id from trunkline.claim(p_worker => 'w1') as c), :'large'::uuid, 'and it starts');

select * from finish();
