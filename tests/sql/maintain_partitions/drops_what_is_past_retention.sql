-- RF-50, RF-51: finished jobs go after thirty days, events after a year, a partition a run, without touching the session.
\ir ../helpers/tools.sql
\ir ../../support/internals/internals.sql
select plan(12);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select t.started('mail') as job \gset
select trunkline.complete(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[1], p_results => array[jsonb_build_object('text', repeat('x', 5000))]) \g /dev/null
select t.dead('mail') as dead \gset

select trunkline_test.move_time('29 days') \g /dev/null
select trunkline.maintain_partitions() \g /dev/null
select is((t.job(:'job')).state, 'completed', 'kept for thirty days');
select trunkline_test.move_time('3 days') \g /dev/null
create function pg_temp.expired() returns bigint language sql as $$
  select count(*) from t.partitions() where parent = 'finished' and upper_bound <= trunkline.clock() - interval '30 days'
$$;
select pg_temp.expired() as before \gset
set lock_timeout = '7s';
select ok(trunkline.maintain_partitions() > 0, 'then the duty begins to drop');
select is(pg_temp.expired(), :before - 1::bigint, 'one partition of a table a run: the rest has time');
select count(trunkline.maintain_partitions()) from generate_series(1, 3) \g /dev/null
select is((t.job(:'job')).state, null, 'the job is gone');
select is(current_setting('lock_timeout'), '7s', 'the settings of the session are as before');
select is((t.job(:'dead')).state, 'dead', 'dead letters are not removed by age');
select is((t.event(:'dead')).kind, 'failed', 'events are kept longer');

select is((select count(*) from t.bodies()), 0::bigint, 'the result kept apart is gone with its job');
select is_empty('select * from t.partitions() where not there', 'the list of partitions is what exists');

set session authorization trunkline_operator;
select is(t.refusal($$select trunkline.set_setting(p_name => 'dead_retention', p_value => '29 days')$$) ->> 'code', 'invalid_setting', 'dead letters cannot be given less than thirty days');
set session authorization trunkline_worker;
select trunkline_test.move_time('345 days') \g /dev/null
select count(trunkline.maintain_partitions()) from generate_series(1, 3) \g /dev/null
select is((t.event(:'dead')).kind, null, 'events go after a year');
select is((t.job(:'dead')).state, 'dead', 'the dead letter still stays');

select * from finish();
