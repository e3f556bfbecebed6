-- CP-50, EX-29, EX-35: a running job runs on until its worker's next call, whichever that is, and ends cancelled.
\ir ../helpers/tools.sql
select plan(13);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select t.started('mail') as beating \gset
select t.started('mail') as failing \gset
select t.started('mail') as snoozing \gset
select t.started('mail') as releasing \gset

set session authorization trunkline_producer;
select is(
  trunkline.cancel(p_job => :'beating', p_reason => 'mistake'),
  row(:'beating', 'requested', 'running')::trunkline.changed_job,
  'the answer says that it was asked for'
);
select is((t.job(:'beating')).state, 'running', 'the job still runs');
select isnt((t.job(:'beating')).cancel_requested_at, null, 'and shows the request');
select is((t.event(:'beating')).kind, 'cancel_requested', 'which is an event');
select trunkline.cancel(p_job => job) from unnest(array[:'failing', :'snoozing', :'releasing']::uuid[]) as job \g /dev/null

set session authorization trunkline_worker;
select is(
  (select verdict from trunkline.heartbeat(p_worker => 'w1', p_jobs => array[:'beating']::uuid[], p_attempts => array[1])),
  'cancel',
  'a heartbeat is told'
);
select is(
  trunkline.progress(p_worker => 'w1', p_job => :'beating', p_attempt => 1, p_percent => 5),
  'cancel',
  'so is a report of progress'
);
select is(
  (select verdict || ' ' || state from trunkline.fail(
    p_worker => 'w1', p_jobs => array[:'failing']::uuid[], p_attempts => array[1]
  )),
  'ok cancelled',
  'a failure ends it cancelled instead of retrying it'
);
select is(
  (select verdict || ' ' || state from trunkline.snooze(
    p_worker => 'w1', p_jobs => array[:'snoozing']::uuid[], p_attempts => array[1]
  )),
  'ok cancelled',
  'so does snooze'
);
select is(
  (select verdict || ' ' || state from trunkline.release(
    p_worker => 'w1', p_jobs => array[:'releasing']::uuid[], p_attempts => array[1]
  )),
  'ok cancelled',
  'so does release'
);
select is((t.job(:'failing')).state, 'cancelled', 'the failed one is cancelled');
select is((t.job(:'snoozing')).state, 'cancelled', 'the snoozed one is cancelled');
select is((t.job(:'releasing')).state, 'cancelled', 'the released one is cancelled');
select is(
  (select verdict from trunkline.complete(p_worker => 'w1', p_jobs => array[:'beating']::uuid[], p_attempts => array[1])),
  'cancel',
  'a completion ends it cancelled once the worker was told'
);

select * from finish();
