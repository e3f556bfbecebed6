-- EX-29, EX-30, EX-31, EX-32, CP-48, RF-65: a retryable failure is due again after the task's back-off, drawn per job.
\ir ../helpers/tools.sql
select plan(11);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_max_attempts => 5, p_backoff => '{"base": 60, "factor": 2, "cap": 3600, "jitter": 0.2}') \g /dev/null
select t.started('mail') as job \gset

select verdict || ' ' || state as answer, run_at from trunkline.fail(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[1]) \gset
select is(:'answer'::text, 'ok scheduled', 'the job waits for another attempt');
select is((t.job(:'job')).run_at, :'run_at'::timestamptz, 'the answer tells when it is due');
select ok(t.delay(:'job') between 48 and 72, 'first wait: 48 to 72 seconds');
select is_empty($$select * from trunkline.claim(p_worker => 'w1')$$, 'it is not claimed before');

select trunkline_test.move_time('72 seconds') \g /dev/null
select trunkline.fail(p_worker => 'w1', p_jobs => array[job_id], p_attempts => array[attempt]) from trunkline.claim(p_worker => 'w1') \g /dev/null
select ok(t.delay(:'job') between 96 and 144, 'second wait: 96 to 144 seconds');
select trunkline_test.move_time('144 seconds') \g /dev/null
select trunkline.fail(p_worker => 'w1', p_jobs => array[job_id], p_attempts => array[attempt]) from trunkline.claim(p_worker => 'w1') \g /dev/null
select ok(t.delay(:'job') between 192 and 288, 'third wait: 192 to 288 seconds');
select trunkline_test.move_time('288 seconds') \g /dev/null
select trunkline.fail(p_worker => 'w1', p_jobs => array[job_id], p_attempts => array[attempt]) from trunkline.claim(p_worker => 'w1') \g /dev/null
select ok(t.delay(:'job') between 384 and 576, 'fourth wait: 384 to 576 seconds');
select trunkline_test.move_time('576 seconds') \g /dev/null
select trunkline.fail(p_worker => 'w1', p_jobs => array[job_id], p_attempts => array[attempt]) from trunkline.claim(p_worker => 'w1') \g /dev/null
select is((t.job(:'job')).state, 'dead', 'the fifth failure is final');

-- Twenty jobs that fail in one call do not come back in one second.
select array_agg(t.started('mail')) as batch from generate_series(1, 20) \gset
select trunkline.fail(p_worker => 'w1', p_jobs => :'batch', p_attempts => array_fill(1, array[20])) \g /dev/null
select ok((select count(distinct t.delay(job)) > 1 from unnest(:'batch'::uuid[]) as job), 'the jitter is drawn for each job of a batch');

select t.started('mail') as own \gset
select trunkline.fail(p_worker => 'w1', p_jobs => array[:'own']::uuid[], p_attempts => array[1], p_delays => array[interval '7 seconds']) \g /dev/null
select is(t.delay(:'own'), 7::numeric, 'a delay given by the worker is taken as it is');
select is(
  t.refusal(format($$select trunkline.fail(p_worker => 'w1', p_jobs => array[%L]::uuid[], p_attempts => array[2], p_delays => array[interval '-7 seconds'])$$, :'own')) ->> 'code',
  'negative_delay',
  'but not one below zero'
);

select * from finish();
