-- RC-19, RC-32, CP-39, CP-40, CP-43, CP-47, TA-21, TA-27: with an old attempt, or as another worker, nothing can be changed.
\ir ../helpers/tools.sql
select plan(19);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_lease => '60 seconds') \g /dev/null
select t.started('mail') as job \gset
select trunkline_test.move_time('61 seconds') \g /dev/null
select trunkline.reclaim() \g /dev/null
select trunkline_test.move_time('60 seconds') \g /dev/null
select job_id as again, attempt from trunkline.claim(p_worker => 'w2') \gset
select is(:'again'::uuid, :'job'::uuid, 'the job runs again');
select is(:attempt, 2, 'as its second attempt');
select t.job(:'job')::text as before \gset

-- The first worker with its own attempt, with the present one, and a stranger with the present one.
prepare late(text, integer) as
select
  (select verdict from trunkline.heartbeat(p_worker => $1, p_jobs => array[:'job']::uuid[], p_attempts => array[$2])) as heartbeat,
  (select verdict from trunkline.complete(p_worker => $1, p_jobs => array[:'job']::uuid[], p_attempts => array[$2])) as complete,
  (select verdict from trunkline.fail(p_worker => $1, p_jobs => array[:'job']::uuid[], p_attempts => array[$2])) as fail,
  (select verdict from trunkline.snooze(p_worker => $1, p_jobs => array[:'job']::uuid[], p_attempts => array[$2])) as snooze,
  (select verdict from trunkline.release(p_worker => $1, p_jobs => array[:'job']::uuid[], p_attempts => array[$2])) as release,
  (select verdict from trunkline.acknowledge_cancel(p_worker => $1, p_jobs => array[:'job']::uuid[], p_attempts => array[$2])) as acknowledge_cancel,
  trunkline.progress(p_worker => $1, p_job => :'job', p_attempt => $2, p_percent => 99) as progress;

select results_eq(
  $$execute late('w1', 1)$$,
  $$values ('lost', 'lost', 'lost', 'lost', 'lost', 'lost', 'lost')$$,
  'the worker that lost the job is told so by every call'
);
select results_eq(
  $$execute late('w1', 2)$$,
  $$values ('lost', 'lost', 'lost', 'lost', 'lost', 'lost', 'lost')$$,
  'knowing the number of the present attempt does not help'
);
select results_eq(
  $$execute late('w2', 1)$$,
  $$values ('lost', 'lost', 'lost', 'lost', 'lost', 'lost', 'lost')$$,
  'nor does the name of the present worker'
);
select is(t.job(:'job')::text, :'before', 'not one field of the job has changed');
select is(
  (select array_agg(kind) from (select (t.event(:'job')).kind) as e),
  array['lost'],
  'no event was written'
);
select is(
  (select verdict from trunkline.heartbeat(p_worker => 'w2', p_jobs => array[:'job']::uuid[], p_attempts => array[2])),
  'ok',
  'the present holder works on'
);

-- From every other state than running nothing leaves by a worker's call either.
select trunkline.complete(p_worker => 'w2', p_jobs => array[:'job']::uuid[], p_attempts => array[2]) \g /dev/null
select t.dead('mail') as dead \gset
set session authorization trunkline_producer;
select job_id as ready from trunkline.enqueue(p_task => 'mail') \gset
set session authorization trunkline_worker;
select is(
  (select array_agg(distinct v.verdict) from trunkline.snooze(
    p_worker => 'w1', p_jobs => array[:'job', :'dead', :'ready']::uuid[], p_attempts => array[2, 1, 1]
  ) as v),
  array['lost'],
  'a completed, a dead and a ready job cannot be snoozed'
);
select is((t.job(:'job')).state, 'completed', 'completed stays completed');
select is((t.job(:'dead')).state, 'dead', 'dead stays dead');
select is((t.job(:'ready')).state, 'ready', 'ready stays ready');
select is(
  (select array_agg(v.verdict order by v.job_id = :'job') from trunkline.fail(
    p_worker => 'w2', p_jobs => array[:'job', :'ready']::uuid[], p_attempts => array[2, 1]
  ) as v),
  array['lost', 'lost'],
  'nor can they fail'
);

-- Calls that name nobody, or arrays that do not fit, are refused as a whole.
select is(t.refusal($$select trunkline.heartbeat(p_worker => '', p_jobs => '{}', p_attempts => '{}')$$) ->> 'code', 'worker_required', 'no worker: heartbeat');
select is(t.refusal($$select trunkline.complete(p_worker => null, p_jobs => '{}', p_attempts => '{}')$$) ->> 'code', 'worker_required', 'no worker: complete');
select is(
  t.refusal($$select trunkline.fail(p_worker => 'w', p_jobs => array[gen_random_uuid()], p_attempts => '{}')$$) ->> 'code',
  'array_length_mismatch',
  'a job without its attempt'
);
select is(
  t.refusal($$select trunkline.complete(p_worker => 'w', p_jobs => array[null]::uuid[], p_attempts => array[1])$$) ->> 'code',
  'array_length_mismatch',
  'a null among the jobs'
);
select is(
  t.refusal($$select trunkline.snooze(p_worker => 'w', p_jobs => array[gen_random_uuid()], p_attempts => array[1], p_delays => array[interval '-1 second'])$$) ->> 'code',
  'negative_delay',
  'a delay below zero'
);
select is(
  t.refusal($$select trunkline.release(p_worker => 'w', p_jobs => null, p_attempts => null)$$) ->> 'code',
  'array_length_mismatch',
  'no jobs at all'
);

select * from finish();
