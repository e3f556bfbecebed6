-- Retention: a partition of steps is dropped after live and dead jobs' rows are copied; events and waits go with their jobs.
\ir ../helpers/tools.sql
\ir ../../support/internals/internals.sql
select plan(9);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select t.started('mail') as live \gset
select t.started('mail') as ended \gset
select trunkline.record_steps('w1', array[:'live', :'ended']::uuid[], array[1, 1], array[1, 1], array['a', 'a'], array['#1', '#1'],
  array[null, null]::bigint[], array['1', '2']::jsonb[]) \g /dev/null
select (trunkline.begin_wait('w1', :'live', 1, 2, 'event', 'go', '#1')).outcome as o \gset
select (trunkline.begin_wait('w1', :'ended', 1, 2, 'event', 'go', '#1')).outcome as o \gset
select v.state from trunkline.suspend('w1', array[:'live']::uuid[], array[1]) as v \g /dev/null
set session authorization trunkline_producer;
select outcome from trunkline.send_event('kept', '1', :'live') \g /dev/null
select outcome from trunkline.send_event('gone', '1', :'ended') \g /dev/null
select outcome from trunkline.send_event('gone', '1', p_key => 'k') \g /dev/null
set session authorization trunkline_worker;
select v.state from trunkline.complete('w1', array[:'ended']::uuid[], array[1]) as v \g /dev/null
reset session authorization;
select is(t.sweep_steps(), 1, 'the wait of the ended job is removed');
select trunkline_test.move_time('7 days');
select is(t.sweep_steps(), 2, 'so are old events that no job can receive');
select results_eq('select * from t.kept_events()', $$values ('kept')$$, 'the event of the live job stays');
select is(t.waits(), 1::bigint, 'and so does its wait');
select trunkline_test.move_time('33 days');
select trunkline.maintain_partitions() from generate_series(1, 45) \g /dev/null
select results_eq('select job_id::text, result from t.recorded()', format($$values (%L, '1'::jsonb)$$, :'live'), 'steps of the live job were copied');
select is((select day from t.recorded()), (trunkline.clock() at time zone 'UTC')::date, 'to today');
select is(t.old_step_partitions(), 0::bigint, 'and the old partitions are gone');
set session authorization trunkline_producer;
select is((select outcome from trunkline.send_event('go', '1', :'live')), 'delivered', 'the event wakes the job');
set session authorization trunkline_worker;
select job_id from trunkline.claim('w2') \g /dev/null
select is((select count(*)::integer from trunkline.recorded_steps('w2', :'live', 2)), 1, 'which finds its step');
select * from finish();
