-- EX-61, RF-48: jobs of every state in one list, the newest first, page by page, with the columns of the view jobs.
\ir ../helpers/tools.sql
-- Time goes on between the jobs: ids of one millisecond are in any order.
select plan(14);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select trunkline.register_task(p_task => 'fax') \g /dev/null
select t.dead('mail') as dead \gset
select trunkline_test.move_time('1 second') \g /dev/null
select t.started('mail') as running \gset
select trunkline_test.move_time('1 second') \g /dev/null
select trunkline.enqueue(p_task => 'mail', p_priority => 49) \g /dev/null
set session authorization trunkline_worker;
select job_id as completed from trunkline.claim(p_worker => 'w1') \gset
select trunkline.complete(p_worker => 'w1', p_jobs => array[:'completed']::uuid[], p_attempts => array[1]) \g /dev/null
set session authorization trunkline_producer;
select trunkline_test.move_time('1 second') \g /dev/null
select job_id as cancelled from trunkline.enqueue(p_task => 'mail') \gset
select trunkline.cancel(p_job => :'cancelled') \g /dev/null
select trunkline_test.move_time('1 second') \g /dev/null
select job_id as scheduled from trunkline.enqueue(p_task => 'mail', p_delay => '1 hour', p_tags => array['x']) \gset
select trunkline_test.move_time('1 second') \g /dev/null
select job_id as ready from trunkline.enqueue(p_task => 'fax', p_queue => 'lines', p_tenant => 'acme', p_priority => 3, p_unique_key => 'k', p_correlation_id => 'c') \gset

set session authorization trunkline_reader;
select is(
  (select array_agg(job_id) from trunkline.list_jobs()),
  array[:'ready', :'scheduled', :'cancelled', :'completed', :'running', :'dead']::uuid[],
  'all jobs, the newest first'
);
select results_eq(
  $$select to_jsonb(j) - '{acknowledged_at, error_group}'::text[] from trunkline.list_jobs() as j$$,
  $$select to_jsonb(j) - '{payload, result, workflow_step, workflow_item}'::text[] from trunkline.jobs as j order by j.job_id desc$$,
  'every column as the view has it, without the bodies and the place in a workflow; two more are about dead letters'
);
select is(
  (select array_agg(state) from trunkline.list_jobs()),
  array['ready', 'scheduled', 'cancelled', 'completed', 'running', 'dead'],
  'each in its state'
);
select is((select array_agg(job_id) from trunkline.list_jobs(p_limit => 2)), array[:'ready', :'scheduled']::uuid[], 'a page');
select is(
  (select array_agg(job_id) from trunkline.list_jobs(p_limit => 3, p_before => :'scheduled')),
  array[:'cancelled', :'completed', :'running']::uuid[],
  'the next page begins after its last id'
);
select is((select array_agg(job_id) from trunkline.list_jobs(p_before => :'dead')), null, 'after the oldest there is none');
select is(
  (select array_agg(job_id) from trunkline.list_jobs(p_states => array['dead', 'completed', 'scheduled'])),
  array[:'scheduled', :'completed', :'dead']::uuid[],
  'some states'
);
select is((select array_agg(job_id) from trunkline.list_jobs(p_states => '{}')), null, 'no states, no jobs');
select is((select array_agg(job_id) from trunkline.list_jobs(p_task => 'fax')), array[:'ready']::uuid[], 'one task');
select is((select array_agg(job_id) from trunkline.list_jobs(p_queue => 'lines')), array[:'ready']::uuid[], 'one queue');
select is((select array_agg(job_id) from trunkline.list_jobs(p_tenant => 'acme')), array[:'ready']::uuid[], 'one tenant');
select is(
  (select array_agg(state) from trunkline.list_jobs(p_states => array['running'], p_task => 'mail', p_queue => 'default')),
  array['running'],
  'all of them at once'
);
set session authorization trunkline_producer;
set trunkline.tenant = 'acme';
select is((select array_agg(job_id) from trunkline.list_jobs()), array[:'ready']::uuid[], 'a session for one tenant sees that tenant');
reset trunkline.tenant;
select is(t.refusal($$select trunkline.list_jobs(p_states => array['done'])$$) ->> 'argument', 'p_states', 'a state that does not exist is refused');

select * from finish();
