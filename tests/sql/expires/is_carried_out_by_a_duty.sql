-- T19: jobs that no claim meets, behind a spent limit or set aside, are ended by the duty expire.
\ir ../helpers/tools.sql
select plan(7);

set session authorization trunkline_operator;
select trunkline.set_limit('api', '{"requests_per_minute": 1, "tokens_per_minute": 1000}') \g /dev/null
set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'call', p_limits => '{api}') \g /dev/null
select job_id as first from trunkline.enqueue(p_task => 'call') \gset
select job_id as behind from trunkline.enqueue(
  p_task => 'call', p_unique_key => 'k', p_expires_at => trunkline.clock() + interval '20 seconds'
) \gset
select job_id as large from trunkline.enqueue(
  p_task => 'call', p_cost => '{"tokens": 1000}', p_expires_at => trunkline.clock() + interval '20 seconds'
) \gset

set session authorization trunkline_worker;
select is((select c.job_id from trunkline.claim(p_worker => 'w1', p_limit => 10) as c), :'first'::uuid, 'the limit allows one');
set session authorization trunkline_operator;
select trunkline.set_limit('api', '{"tokens_per_minute": 900}') \g /dev/null
select is((t.job(:'large')).state, 'blocked', 'a job that costs more than the limit gives is set aside');

select trunkline_test.move_time('21 seconds') \g /dev/null
select is((t.job(:'behind')).state, 'ready', 'nothing has ended them yet');
select ok((select d.ran from trunkline.run_duties() as d where d.duty = 'expire'), 'the duty runs');
select is((t.job(:'behind')).state || ' ' || (t.job(:'behind')).reason, 'cancelled expired', 'it ends the job behind the spent limit');
select is((t.job(:'large')).state || ' ' || (t.job(:'large')).reason, 'cancelled expired', 'and the one that was set aside');
select is((select b.set_aside from trunkline.buckets as b where b.name = 'api'), 0::bigint, 'which is no longer counted as set aside');

select * from finish();
