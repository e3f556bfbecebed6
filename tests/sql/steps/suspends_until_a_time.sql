-- Sleep: the job gives its slot back, counts no failure or deferral, and goes on after the time (T20, T21).
\ir ../helpers/tools.sql
select plan(18);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail', p_audit => true) \g /dev/null
set session authorization trunkline_producer;
select job_id as one from trunkline.enqueue(p_task => 'mail', p_unique_key => 'k', p_priority => 3) \gset
set session authorization trunkline_worker;
select job_id from trunkline.claim('w1') \g /dev/null
select is((w).outcome, 'wait', 'a sleep that begins has to wait')
from trunkline.begin_wait('w1', :'one', 1, 1, 'sleep', 'sleep', '#1', p_timeout => '3 hours') as w;
select is(v.verdict || ' ' || v.state, 'ok scheduled', 'the job is put back') from trunkline.suspend('w1', array[:'one']::uuid[], array[1]) as v;
select is((t.job(:'one')).reason, 'suspended', 'as suspended');
select is((t.job(:'one')).failures || ' ' || (t.job(:'one')).deferrals, '0 0', 'without a failure or a deferral');
select is((t.job(:'one')).unique_key, 'k', 'and keeps its unique key');
select is(round(t.delay(:'one'))::integer, 10800, 'due after three hours');
select is((t.event(:'one')).kind, 'suspended', 'with an event');
select is(v.verdict, 'lost', 'the attempt has ended') from trunkline.suspend('w1', array[:'one']::uuid[], array[1]) as v;
select is((select count(*)::integer from trunkline.claim('w1')), 0, 'nothing to claim');
set session authorization trunkline_producer;
select results_eq(
  format('select reason, until = (trunkline.job(%1$L)).run_at, detail - ''since'' from trunkline.explain(%1$L)', :'one'),
  $$values ('suspended', true, '{"kind": "sleep", "name": "sleep"}'::jsonb)$$, 'explain shows the wait'
);
select results_eq(
  format('select kind, name, key, state, result from trunkline.job_steps(%L)', :'one'),
  $$values ('sleep', 'sleep', '#1', 'waiting', null::jsonb)$$, 'so does job_steps'
);
select trunkline.enqueue(p_task => 'mail', p_priority => 3) \g /dev/null
select trunkline_test.move_time('3 hours');
set session authorization trunkline_worker;
select is(c.job_id::text || ' ' || c.attempt || ' ' || c.priority, :'one' || ' 2 3', 'it goes on before new jobs of its priority') from trunkline.claim('w2') as c;
select is((w).outcome, 'over', 'the sleep is over') from trunkline.begin_wait('w2', :'one', 2, 1, 'sleep', 'sleep', '#1', p_timeout => '3 hours') as w;
select results_eq(
  format('select kind, key from trunkline.recorded_steps(''w2'', %L, 2)', :'one'), $$values ('sleep', '#1')$$, 'and recorded'
);
select is((w).outcome, 'wait', 'a retried attempt') from trunkline.begin_wait('w2', :'one', 2, 2, 'sleep', 'sleep', '#2', p_timeout => '1 hour') as w;
select trunkline.fail('w2', array[:'one']::uuid[], array[2], array['{"message": "no"}']::jsonb[], array[true], array[interval '50 minutes']) \g /dev/null
select trunkline_test.move_time('50 minutes');
select job_id from trunkline.claim('w3', p_limit => 2) \g /dev/null
select is(round(extract(epoch from (w).until - trunkline.clock()))::integer, 600, 'sleeps only for the rest')
from trunkline.begin_wait('w3', :'one', 3, 2, 'sleep', 'sleep', '#2', p_timeout => '1 hour') as w;
set session authorization trunkline_producer;
select trunkline.cancel(:'one') \g /dev/null
set session authorization trunkline_worker;
select is((w).outcome, 'cancel', 'a cancelled job does not wait') from trunkline.begin_wait('w3', :'one', 3, 2, 'sleep', 'sleep', '#3', p_timeout => '1 hour') as w;
select is(v.verdict || ' ' || v.state, 'ok cancelled', 'and its suspension ends it') from trunkline.suspend('w3', array[:'one']::uuid[], array[3]) as v;
select * from finish();
