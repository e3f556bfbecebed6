-- CP-31, CP-32, RC-07, RC-08, RC-11, RF-69, TA-24, EX-34: at lease minus one second a silent job is kept, at plus one it is taken back.
\ir ../helpers/tools.sql
select plan(14);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select t.started('mail') as job \gset
select t.started('mail', 'w2') as other \gset

select trunkline_test.move_time('299 seconds') \g /dev/null
select is_empty('select * from trunkline.reclaim()', 'at 299 of 300 seconds nothing is lost');
select is((t.job(:'job')).state, 'running', 'the job runs');
select trunkline_test.move_time('2 seconds') \g /dev/null
select results_eq(
  'select job_id, task, attempt, worker, reason, state, failures from trunkline.reclaim() order by worker',
  format($$values (%L::uuid, 'mail', 1, 'w1', 'lease_expired', 'scheduled', 1), (%L, 'mail', 1, 'w2', 'lease_expired', 'scheduled', 1)$$, :'job', :'other'),
  'at 301 seconds all silent jobs are taken back, and reported'
);
select is((t.job(:'job')).state, 'scheduled', 'it waits for its next attempt');
select is((t.job(:'job')).failures, 1, 'one more failure, counted once');
select is((t.job(:'job')).attempt, 1, 'the attempt number stays until the next claim');
select is((t.job(:'job')).worker, null, 'its worker is cleared');
select is((t.job(:'job')).claimed_at, null, 'so is the time of its claim');
select is((t.job(:'job')).reason, 'lease_expired', 'the reason is told');
select ok(t.delay(:'job') between 0 and 60, 'it is due within the jitter');
select is_empty('select * from trunkline.reclaim()', 'a second run finds nothing');
select is((t.job(:'job')).failures, 1, 'and counts nothing');

select trunkline_test.move_time('60 seconds') \g /dev/null
select results_eq(
  $$select attempt, failures from trunkline.claim(p_worker => 'w3', p_limit => 9)$$,
  $$values (2, 1), (2, 1)$$,
  'both are claimed again after it'
);
set session authorization trunkline_producer;
select is(t.refusal('select trunkline.reclaim()') ->> 'sqlstate', '42501', 'a producer may not reclaim');

select * from finish();
