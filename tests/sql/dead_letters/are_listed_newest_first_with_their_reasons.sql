-- CP-49, RC-22: dead letters are listed newest first, by task and reason, and inspected one by one; only operators and readers see them.
\ir ../helpers/tools.sql
select plan(7);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select trunkline.register_task(p_task => 'fax', p_max_attempts => 1) \g /dev/null
select t.dead('mail') as first \gset
select trunkline_test.move_time('1 minute') \g /dev/null
select t.started('fax') as second \gset
select trunkline.fail(p_worker => 'w1', p_jobs => array[:'second']::uuid[], p_attempts => array[1]) \g /dev/null
select trunkline_test.move_time('1 minute') \g /dev/null
select t.dead('mail') as third \gset

set session authorization trunkline_reader;
select is((select array_agg(job_id) from trunkline.dead_letters), array[:'third', :'second', :'first']::uuid[], 'newest first');
select results_eq(
  'select task, reason, count(*) from trunkline.dead_letters group by task, reason order by task',
  $$values ('fax', 'attempts_exhausted', 1::bigint), ('mail', 'not_retryable', 2)$$,
  'by task and reason'
);
select is((select payload from trunkline.job(p_job => :'first')), '{}'::jsonb, 'one can be inspected with its payload');
select is((select errors -> 0 ->> 'message' from trunkline.job(p_job => :'first')), 'no', 'and its errors');
set trunkline.tenant = 'acme';
select is_empty('select * from trunkline.dead_letters', 'a tenant sees its own only');
reset trunkline.tenant;
set session authorization trunkline_worker;
select is(t.refusal('select * from trunkline.dead_letters') ->> 'sqlstate', '42501', 'a worker sees none');
set session authorization trunkline_reader;
select is((select dead from trunkline.queues), 3::bigint, 'the view of queues counts them');

select * from finish();
