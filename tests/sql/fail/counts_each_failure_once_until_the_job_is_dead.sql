-- RF-65, TA-23, TA-25, EX-29, EX-32, RC-21, CP-48: failures count once, when an attempt ends; at max_attempts the job is dead.
\ir ../helpers/tools.sql
select plan(13);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_max_attempts => 3, p_lease => '60 seconds', p_backoff => '{"base": 0}') \g /dev/null
select t.started('mail') as job \gset
select is((t.job(:'job')).failures, 0, 'a claim is no failure');
select trunkline.fail(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[1]) \g /dev/null
select is((t.job(:'job')).failures, 1, 'a failed attempt is one');
select is(
  (select verdict from trunkline.fail(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[1])),
  'lost',
  'reported twice'
);
select is((t.job(:'job')).failures, 1, 'it still is one');

select is((select failures || ' of ' || max_attempts from trunkline.claim(p_worker => 'w1')), '1 of 3', 'the next worker is told');
select trunkline_test.move_time('61 seconds') \g /dev/null
select trunkline.reclaim() \g /dev/null
select is((t.job(:'job')).failures, 2, 'a lost attempt is one as well');

select trunkline_test.move_time('61 seconds') \g /dev/null
select results_eq(
  $$select f.verdict, f.state from trunkline.claim(p_worker => 'w1') as c
    cross join lateral trunkline.fail(p_worker => 'w1', p_jobs => array[c.job_id], p_attempts => array[c.attempt]) as f$$,
  $$values ('ok', 'dead')$$,
  'the third failure ends it'
);
select is((t.job(:'job')).state, 'dead', 'the job is dead');
select is((t.job(:'job')).reason, 'attempts_exhausted', 'with the reason');
select is((t.job(:'job')).failures || ' failures, attempt ' || (t.job(:'job')).attempt, '3 failures, attempt 3', 'after three attempts in all');
select isnt((t.job(:'job')).finished_at, null, 'and the time');
select trunkline_test.move_time('1 day') \g /dev/null
select is_empty($$select * from trunkline.claim(p_worker => 'w1')$$, 'it is never claimed again');

-- A success in between leaves the count alone; one attempt means no retry.
select trunkline.register_task(p_task => 'once', p_max_attempts => 1) \g /dev/null
select t.started('once') as once \gset
select is(
  (select state from trunkline.fail(p_worker => 'w1', p_jobs => array[:'once']::uuid[], p_attempts => array[1])),
  'dead',
  'with one attempt the first failure is final'
);

select * from finish();
