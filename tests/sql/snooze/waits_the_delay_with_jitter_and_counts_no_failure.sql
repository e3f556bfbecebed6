-- CP-41, CP-42, CP-63, RF-67: a snoozed job is due after its delay plus up to half of it, at most 30 s; no failure is counted.
\ir ../helpers/tools.sql
select plan(15);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select array_agg(t.started('mail')) as short from generate_series(1, 40) \gset
select array_agg(t.started('mail')) as long from generate_series(1, 60) \gset
select is(
  (select array_agg(distinct verdict || ' ' || state) from trunkline.snooze(
    p_worker => 'w1', p_jobs => :'short', p_attempts => array_fill(1, array[40]), p_delays => array_fill(interval '30 seconds', array[40]), p_reason => 'api_rate_limit_backpressure'
  )),
  array['ok scheduled'],
  'the jobs are put off'
);
select ok((select bool_and(t.delay(job) between 30 and 45) from unnest(:'short'::uuid[]) as job), 'a delay of 30 becomes 30 to 45 seconds');
select ok((select bool_and(t.delay(job) = floor(t.delay(job))) from unnest(:'short'::uuid[]) as job), 'whole ones');
select ok((select count(distinct t.delay(job)) > 3 from unnest(:'short'::uuid[]) as job), 'drawn for each job');
select trunkline.snooze(p_worker => 'w1', p_jobs => :'long', p_attempts => array_fill(1, array[60]), p_delays => array_fill(interval '100 seconds', array[60])) \g /dev/null
select ok((select bool_and(t.delay(job) between 100 and 130) from unnest(:'long'::uuid[]) as job), 'a delay of 100 becomes 100 to 130 seconds');
select ok((select max(t.delay(job)) > 115 from unnest(:'long'::uuid[]) as job), 'not only the lower half');

select t.started('mail') as exact \gset
select trunkline.snooze(p_worker => 'w1', p_jobs => array[:'exact']::uuid[], p_attempts => array[1], p_delays => array[interval '30 seconds'], p_reason => 'Retry-After', p_jitter => false) \g /dev/null
select is(t.delay(:'exact'), 30::numeric, 'without jitter exactly the delay');
select is((t.job(:'exact')).failures, 0, 'no failure is counted');
select is((t.job(:'exact')).deferrals, 1, 'a deferral is');
select is((t.job(:'exact')).worker, null, 'its worker is cleared');
select is((t.job(:'exact')).reason, 'Retry-After', 'the reason is kept');
select is(
  (t.event(:'exact')).detail - 'run_at',
  '{"reason": "Retry-After", "delay_seconds": 30, "jitter_seconds": 0, "deferrals": 1, "over_bounds": false}'::jsonb,
  'the event tells delay and jitter'
);
select is_empty($$select * from trunkline.claim(p_worker => 'w1', p_limit => 500)$$, 'nobody claims them before');
select trunkline_test.move_time('31 seconds') \g /dev/null
select ok((select :'exact' = any(array_agg(job_id)) from trunkline.claim(p_worker => 'w1', p_limit => 500)), 'then they are');
select is((t.job(:'exact')).attempt, 2, 'as a new attempt');

select * from finish();
