-- One call may hand some jobs over and bury others; what a claim charged for a job that nobody ran is taken back.
\ir ../helpers/tools.sql
select plan(5);

set session authorization trunkline_operator;
select trunkline.set_limit(p_limit => 'openai', p_parts => '{"requests_per_minute": 5}') \g /dev/null
set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_limits => array['openai']) \g /dev/null
select trunkline.register_task(p_task => 'count') \g /dev/null
select trunkline.register_worker(p_worker => 'w1', p_detail => '{"signatures": {"mail": "old", "count": "old"}}') \g /dev/null
select trunkline.register_worker(p_worker => 'w2', p_detail => '{"signatures": {"mail": "new", "count": "old"}}') \g /dev/null
select t.started('mail') as first \gset
select t.started('count') as second \gset
select t.started('mail') as third \gset
select t.started('mail', 'w3') as others \gset
set session authorization trunkline_operator;
select is((select g.requests_of_minute from trunkline.buckets as g where g.name = 'openai'), 3::bigint, 'three claims were charged');

set session authorization trunkline_worker;
select results_eq(
  format(
    $$select job_id, verdict, state, other_worker from trunkline.hand_over(
      p_worker => 'w1', p_jobs => array[%1$L, %2$L, %3$L, %4$L]::uuid[], p_attempts => array[1, 1, 1, 1],
      p_errors => array['{"field": "a"}', '{"field": "b"}', '{"field": "c"}', '{"field": "d"}']::jsonb[]
    ) order by array_position(array[%1$L, %2$L, %3$L, %4$L]::uuid[], job_id)$$,
    :'first', :'second', :'third', :'others'
  ),
  format(
    $$values (%L::uuid, 'ok', 'scheduled', 'w2'), (%L, 'ok', 'dead', null), (%L, 'ok', 'scheduled', 'w2'), (%L, 'lost', null, null)$$,
    :'first', :'second', :'third', :'others'
  ),
  'each job has its own answer'
);
select is((t.job(:'third')).reason, 'field c of the payload does not fit the code of w1; w2 has another version of mail', 'and its own reason');
set session authorization trunkline_operator;
select is((select g.requests_of_minute from trunkline.buckets as g where g.name = 'openai'), 1::bigint, 'only the job that still runs is charged');
set session authorization trunkline_worker;
select is(
  t.refusal($$select trunkline.hand_over(p_worker => 'w1', p_jobs => array[gen_random_uuid()], p_attempts => array[1], p_errors => '{}')$$) ->> 'code',
  'array_length_mismatch', 'each job has one error'
);

select * from finish();
