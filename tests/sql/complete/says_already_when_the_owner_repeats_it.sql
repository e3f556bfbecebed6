-- TA-22, CP-45, CP-46, RF-72: a repeated completion changes nothing and is told apart from a lost job.
\ir ../helpers/tools.sql
select plan(7);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_audit => true) \g /dev/null
select t.started('mail') as done \gset
select t.started('mail') as open \gset
select trunkline.complete(p_worker => 'w1', p_jobs => array[:'done']::uuid[], p_attempts => array[1], p_results => array['{"n": 1}'::jsonb]) \g /dev/null
select t.job(:'done')::text as before \gset

select is(
  (select array_agg(verdict order by job_id = :'open') from trunkline.complete(
    p_worker => 'w1', p_jobs => array[:'done', :'open']::uuid[], p_attempts => array[1, 1], p_results => array['{"n": 2}', '{"n": 3}']::jsonb[]
  )),
  array['already', 'ok'],
  'the repeated one is already done, the other one of the batch is completed'
);
select is(t.job(:'done')::text, :'before'::text, 'the first result stands');
set session authorization trunkline_operator;
select is(
  (select count(*) from trunkline.events where job_id = :'done' and kind = 'completed'),
  1::bigint,
  'there is one event of completion'
);
set session authorization trunkline_worker;
select is(
  (select verdict from trunkline.complete(p_worker => 'w2', p_jobs => array[:'done']::uuid[], p_attempts => array[1])),
  'lost',
  'for another worker it is lost'
);
select is(
  (select verdict from trunkline.complete(p_worker => 'w1', p_jobs => array[:'done']::uuid[], p_attempts => array[2])),
  'lost',
  'for another attempt as well'
);
select is(
  (select verdict from trunkline.complete(p_worker => 'w1', p_jobs => array[:'done']::uuid[], p_attempts => array[1], p_strict => true)),
  'already',
  'a strict completion may be repeated too'
);
select is(
  (select verdict from trunkline.fail(p_worker => 'w1', p_jobs => array[:'done']::uuid[], p_attempts => array[1])),
  'lost',
  'what is completed cannot fail'
);

select * from finish();
