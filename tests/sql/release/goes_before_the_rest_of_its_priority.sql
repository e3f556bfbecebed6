-- RF-68, RF-72: a job given back at once is ready without a failure, first within its priority, in its old order.
\ir ../helpers/tools.sql
select plan(10);

set session authorization trunkline_producer;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select job_id as first from trunkline.enqueue(p_task => 'mail') \gset
select job_id as second from trunkline.enqueue(p_task => 'mail') \gset
select job_id as third from trunkline.enqueue(p_task => 'mail') \gset
set session authorization trunkline_worker;
select trunkline.claim(p_worker => 'w1', p_limit => 2) \g /dev/null
set session authorization trunkline_producer;
select job_id as urgent from trunkline.enqueue(p_task => 'mail', p_priority => 1) \gset

set session authorization trunkline_worker;
select results_eq(
  format($$select verdict, state from trunkline.release(p_worker => 'w1', p_jobs => array[%L, %L]::uuid[], p_attempts => array[1, 1], p_reason => 'deadlock')$$, :'second', :'first'),
  $$values ('ok', 'ready'), ('ok', 'ready')$$,
  'both are ready again'
);
select is((t.job(:'first')).failures, 0, 'no failure is counted');
select is((t.job(:'first')).deferrals, 1, 'but that it was given back');
select is((t.job(:'first')).reason, 'deadlock', 'with the reason');
select is((t.event(:'first')).kind, 'released', 'there is an event');
select ok((t.event(:'first')).detail ->> 'delay_seconds' is null, 'that tells of no delay, for there is none');
select is(
  (select array_agg(job_id) from trunkline.claim(p_worker => 'w2', p_limit => 9)),
  array[:'urgent', :'first', :'second', :'third']::uuid[],
  'a higher priority goes first, then what was given back in its old order, then the rest'
);
select is((t.job(:'first')).attempt, 2, 'as a new attempt');
select is((select verdict from trunkline.complete(p_worker => 'w1', p_jobs => array[:'first']::uuid[], p_attempts => array[1])), 'lost', 'the one who gave it back has nothing to report');
select is((t.job(:'first')).priority, 0, 'its priority is what it was');

select * from finish();
