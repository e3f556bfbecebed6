-- Cancel is answered to the attempt it was asked for, past the hard limit as well, and its first time is kept.
\ir ../helpers/tools.sql
\ir ../../support/internals/frozen.sql
select plan(10);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_lease => '20 seconds', p_hard_limit => '30 seconds') \g /dev/null
select t.started('mail') as asked \gset
select t.started('mail') as other \gset
create function pg_temp.beat(p_job uuid) returns text language sql as $$
  select concat_ws(' ', v.verdict, v.state, t.after_noon(v.run_at))
  from trunkline.heartbeat(p_worker => 'w1', p_jobs => array[p_job], p_attempts => array[1]) as v
$$;
set session authorization trunkline_producer;
select is(trunkline.cancel(p_job => :'asked', p_reason => 'no need'), row(:'asked'::uuid, 'requested', 'running')::trunkline.changed_job, 'a running job is asked to stop');
select trunkline_test.move_time('10 seconds') \g /dev/null
select is(trunkline.cancel(p_job => :'asked', p_reason => 'again'), row(:'asked'::uuid, 'requested', 'running')::trunkline.changed_job, 'asking twice');
select is(
  (select concat_ws(' ', t.after_noon(j.cancel_requested_at), j.reason) from t.job(:'asked') as j),
  '00:00:00 no need', 'keeps the first time and reason'
);
set session authorization trunkline_worker;
select is(pg_temp.beat(:'asked'), 'cancel running 00:00:30', 'the heartbeat is answered with cancel');
select is(pg_temp.beat(:'other'), 'ok running 00:00:30', 'that of another job is not');
select is(trunkline.progress(p_worker => 'w1', p_job => :'asked', p_attempt => 1, p_percent => 5), 'cancel', 'nor is progress');
select is(trunkline.progress(p_worker => 'w1', p_job => :'other', p_attempt => 1, p_percent => 5), 'ok', 'of another job');
select trunkline_test.move_time('25 seconds') \g /dev/null
select is(pg_temp.beat(:'asked'), 'cancel running 00:00:30', 'past the hard limit the answer is still cancel');
select is(pg_temp.beat(:'other'), 'lost running 00:00:30', 'where it is lost for others');
select is(
  (select array_agg(concat_ws(' ', v.verdict, v.state)) from trunkline.complete(
    p_worker => 'w1', p_jobs => array[:'asked', :'other']::uuid[], p_attempts => array[1, 1], p_results => array['1', '2']::jsonb[]
  ) as v),
  array['cancel cancelled', 'ok completed'],
  'what was told to cancel ends cancelled, the other one completed'
);

select * from finish();
