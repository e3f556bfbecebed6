-- T14, CP-50, EX-35: once a heartbeat or progress call returned cancel, complete ends the job cancelled.
\ir ../helpers/tools.sql
select plan(17);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
set session authorization trunkline_producer;
select job_id as beating from trunkline.enqueue(p_task => 'mail', p_unique_key => 'only one') \gset
set session authorization trunkline_worker;
select trunkline.claim(p_worker => 'w1') \g /dev/null
select t.started('mail') as progressing \gset
select t.started('mail') as untold \gset
select t.started('mail') as undone \gset
select t.started('mail') as good \gset

set session authorization trunkline_producer;
select trunkline.cancel(p_job => job, p_reason => 'mistake')
from unnest(array[:'beating', :'progressing', :'untold', :'undone']::uuid[]) as job \g /dev/null

set session authorization trunkline_worker;
select is(
  (select array_agg(verdict) from trunkline.heartbeat(
    p_worker => 'w1', p_jobs => array[:'beating', :'good']::uuid[], p_attempts => array[1, 1]
  )),
  array['cancel', 'ok'],
  'the worker is told of the one that was cancelled'
);
select is(trunkline.progress(p_worker => 'w1', p_job => :'progressing', p_attempt => 1), 'cancel', 'progress tells it, too');
begin;
select trunkline.heartbeat(p_worker => 'w1', p_jobs => array[:'undone']::uuid[], p_attempts => array[1]) \g /dev/null
rollback;

select is(
  t.refusal(format(
    $$select trunkline.complete(p_worker => 'w1', p_jobs => array[%L, %L]::uuid[], p_attempts => array[1, 1], p_strict => true)$$,
    :'good', :'beating'
  )) ->> 'code',
  'attempt_cancelled',
  'a strict completion is refused, and the caller''s writes with it'
);
select is((t.job(:'beating')).state, 'running', 'which ended nothing');
select results_eq(
  format(
    $$select verdict, state from trunkline.complete(
      p_worker => 'w1', p_jobs => array[%L, %L, %L, %L, %L]::uuid[], p_attempts => array[1, 1, 1, 1, 1],
      p_results => array[
        jsonb_build_object('text', repeat(md5('a'), 100)), '{"n": 2}', '{"n": 3}', '{"n": 4}',
        jsonb_build_object('text', repeat(md5('b'), 100))
      ]
    )$$,
    :'beating', :'progressing', :'untold', :'undone', :'good'
  ),
  $$values ('cancel', 'cancelled'), ('cancel', 'cancelled'), ('ok', 'completed'), ('ok', 'completed'), ('ok', 'completed')$$,
  'a plain one ends it cancelled, and spoils no other job of the batch'
);
select is((t.job(:'beating')).state, 'cancelled', 'the job is cancelled');
select is((t.job(:'beating')).reason, 'mistake', 'with the reason of the request');
select is((t.job(:'beating')).failures, 0, 'no failure is counted');
select is((t.job(:'beating')).result, null, 'its result is dropped, however large');
select is((t.job(:'progressing')).result, null, 'or small');
select is((t.event(:'beating')).kind, 'cancelled', 'it is an event');
select is((t.event(:'beating')).detail ->> 'reason', 'mistake', 'that says why');
select is((t.job(:'untold')).state, 'completed', 'who was not told completes the job');
select is((t.job(:'undone')).result, '{"n": 4}', 'also where the heartbeat that told it was rolled back');
select is(length((t.job(:'good')).result ->> 'text'), 3200, 'the rest of the batch keeps its results');
select is(
  (select verdict from trunkline.complete(p_worker => 'w1', p_jobs => array[:'beating']::uuid[], p_attempts => array[1])),
  'lost',
  'a later completion changes nothing'
);
set session authorization trunkline_producer;
select is(
  (select created from trunkline.enqueue(p_task => 'mail', p_unique_key => 'only one')),
  true,
  'and its unique key is free'
);

select * from finish();
