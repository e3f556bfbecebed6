-- CP-18, CP-22, RC-01, RF-47: enqueue answers with the job, and what is left out or null becomes the task's default.
\ir ../helpers/tools.sql
select plan(15);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail', p_queue => 'post', p_priority => 5, p_max_attempts => 6) \g /dev/null
select trunkline.clock() as before \gset
select * from trunkline.enqueue(p_task => 'mail', p_payload => '{"to": "a"}') \gset
select is(:'created'::boolean, true, 'a job was made');
select is(:'state'::text, 'ready', 'which is ready');
select ok(:'run_at'::timestamptz between :'before' and trunkline.clock(), 'and due now');

select is((t.job(:'job_id')).payload, '{"to": "a"}'::jsonb, 'its payload');
select is((t.job(:'job_id')).queue, 'post', 'the queue of its task');
select is((t.job(:'job_id')).priority, 5, 'the priority of its task');
select is((t.job(:'job_id')).max_attempts, 6, 'the attempts of its task');
select is((t.job(:'job_id')).attempt + (t.job(:'job_id')).failures + (t.job(:'job_id')).deferrals, 0, 'nothing happened to it yet');

select job_id as nulls from trunkline.enqueue(
  p_task => 'mail', p_payload => '{}', p_queue => null, p_priority => null, p_run_at => null, p_delay => null,
  p_tenant => null, p_unique_key => null, p_idempotency_key => null, p_correlation_id => null,
  p_max_attempts => null, p_tags => null
) \gset
select is((t.job(:'nulls')).priority, 5, 'null is the default, not stored as null: priority');
select isnt((t.job(:'nulls')).run_at, null, 'due time');
select is((t.job(:'nulls')).max_attempts, 6, 'attempts');

select job_id as own, state as own_state, run_at as own_run_at from trunkline.enqueue(
  p_task => 'mail', p_queue => 'express', p_priority => -50, p_delay => '90 seconds', p_tenant => 'acme',
  p_unique_key => 'k', p_correlation_id => 'c', p_max_attempts => 1, p_tags => array['x', 'y']
) \gset
select is(:'own_state'::text, 'scheduled', 'a job with a delay is scheduled');
select is(:'own_run_at'::timestamptz - (t.job(:'own')).created_at, interval '90 seconds', 'for exactly then');
select results_eq(
  format('select queue, priority, tenant, unique_key, correlation_id, max_attempts, tags from trunkline.jobs where job_id = %L', :'own'),
  $$values ('express', -50, 'acme', 'k', 'c', 1, array['x', 'y'])$$,
  'what is given is kept'
);
select is(
  t.refusal($$select trunkline.enqueue(p_task => 'mail', p_max_attempts => 0)$$) ->> 'argument',
  'p_max_attempts',
  'and checked'
);

select * from finish();
