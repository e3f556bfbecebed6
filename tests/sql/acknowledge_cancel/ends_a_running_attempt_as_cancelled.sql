-- CP-50, EX-35: the worker that saw a request to cancel ends its attempt, and later reports are refused.
\ir ../helpers/tools.sql
select plan(8);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select t.started('mail') as asked \gset
select t.started('mail') as unasked \gset

set session authorization trunkline_operator;
select trunkline.cancel(p_job => :'asked', p_reason => 'customer left') \g /dev/null

set session authorization trunkline_worker;
select is(
  (select verdict || ' ' || state from trunkline.acknowledge_cancel(
    p_worker => 'w1', p_jobs => array[:'asked']::uuid[], p_attempts => array[1]
  )),
  'ok cancelled',
  'the worker ends what it was asked to end'
);
select is((t.job(:'asked')).state, 'cancelled', 'the job is cancelled');
select is((t.job(:'asked')).reason, 'customer left', 'with the reason of the request');
select is((t.job(:'asked')).failures, 0, 'no failure is counted');
select is(
  (select verdict from trunkline.complete(p_worker => 'w1', p_jobs => array[:'asked']::uuid[], p_attempts => array[1])),
  'lost',
  'a later completion changes nothing'
);
select is(
  (select verdict from trunkline.fail(p_worker => 'w1', p_jobs => array[:'asked']::uuid[], p_attempts => array[1])),
  'lost',
  'nor does a later failure'
);

select trunkline.acknowledge_cancel(
  p_worker => 'w1', p_jobs => array[:'unasked']::uuid[], p_attempts => array[1], p_reasons => array['not needed']
) \g /dev/null
select is((t.job(:'unasked')).reason, 'not needed', 'a handler may also decide so by itself, with a reason');
select is((t.event(:'unasked')).kind, 'cancelled', 'both are events');

select * from finish();
