-- CP-49, RF-72: a finished job is never run again in place: retry enqueues a new one that names it.
\ir ../helpers/tools.sql
select plan(12);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail', p_max_attempts => 2) \g /dev/null
select job_id as done from trunkline.enqueue(p_task => 'mail', p_payload => jsonb_build_object('text', repeat('x', 5000)), p_priority => 4, p_tenant => 'acme', p_max_attempts => 7, p_tags => array['x']) \gset
select job_id as gone from trunkline.enqueue(p_task => 'mail', p_payload => '{"n": 1}', p_unique_key => 'k') \gset
select trunkline.cancel(p_job => :'gone') \g /dev/null
set session authorization trunkline_worker;
select trunkline.complete(p_worker => 'w1', p_jobs => array[job_id], p_attempts => array[attempt], p_results => array['{"ok": 1}'::jsonb]) from trunkline.claim(p_worker => 'w1') \g /dev/null

set session authorization trunkline_operator;
select job_id as anew, created, state from trunkline.retry(p_job => :'done') \gset
select isnt(:'anew'::uuid, :'done'::uuid, 'a new job');
select is(:'created'::boolean, true, 'was made');
select is(:'state'::text, 'ready', 'and is ready');
select results_eq(
  format('select retry_of, priority, tenant, max_attempts, tags, attempt from trunkline.jobs where job_id = %L', :'anew'),
  format($$values (%L::uuid, 4, 'acme', 7, array['x'], 0)$$, :'done'),
  'it names the old one and has its properties'
);
select is(length((t.job(:'anew')).payload ->> 'text'), 5000, 'and its payload, large as it is');
select is((t.job(:'done')).state, 'completed', 'the old one is what it was');
select is((t.job(:'done')).result, '{"ok": 1}'::jsonb, 'with its result');
select is((t.event(:'done')).detail, jsonb_build_object('new_job', :'anew'), 'its event names the new one');

select job_id as again from trunkline.retry(p_job => :'gone') \gset
select is((t.job(:'again')).retry_of, :'gone'::uuid, 'a cancelled job likewise');
select is((t.job(:'again')).unique_key, 'k', 'with its unique key');
select results_eq(
  format('select job_id, created from trunkline.retry(p_job => %L)', :'gone'),
  format($$values (%L::uuid, false)$$, :'again'),
  'a second retry meets the job of the first, which holds that key'
);
select is((select count(*) from trunkline.jobs), 4::bigint, 'four jobs in all');

select * from finish();
