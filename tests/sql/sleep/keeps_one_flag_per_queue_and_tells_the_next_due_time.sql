-- RF-120, CP-95: an idle worker leaves one flag per queue and learns when the next scheduled job of its queues is due.
\ir ../helpers/tools.sql
\ir ../../support/internals/internals.sql
select plan(17);

set session authorization trunkline_worker;
select trunkline.register_task(p_task => 'mail') \g /dev/null
select trunkline.register_worker(p_worker => 'w1') \g /dev/null
select trunkline.register_worker(p_worker => 'w2') \g /dev/null
select is(trunkline.sleep(p_worker => 'w1'), null, 'nothing is scheduled');
select is(t.flags(), array['w1 *'], 'without queues the flag is for all of them');
select t.flag_versions() as versions \gset
select trunkline.sleep(p_worker => 'w1') \g /dev/null
select is(t.flag_versions(), :'versions'::text[], 'a flag that is set is not written again');
select trunkline.sleep(p_worker => 'w2', p_queues => array['b', 'a', 'b']) \g /dev/null
select is(t.flags(), array['w1 *', 'w2 a', 'w2 b'], 'each worker and queue has its own');
select trunkline.sleep(p_worker => 'w2', p_queues => array['c']) \g /dev/null
select is(t.flags(), array['w1 *', 'w2 a', 'w2 b', 'w2 c'], 'flags add up');
select is(trunkline.sleep(p_worker => 'w2', p_queues => '{}'), null, 'no queues are no flag');

set session authorization trunkline_producer;
select run_at as later from trunkline.enqueue(p_task => 'mail', p_queue => 'a', p_delay => '2 hours') \gset
select run_at as sooner from trunkline.enqueue(p_task => 'mail', p_queue => 'b', p_delay => '1 hour') \gset
select trunkline.enqueue(p_task => 'mail', p_queue => 'a') \g /dev/null
set session authorization trunkline_worker;
select is(trunkline.sleep(p_worker => 'w1'), :'sooner'::timestamptz, 'the first due time of all queues');
select is(trunkline.sleep(p_worker => 'w2', p_queues => array['a']), :'later'::timestamptz, 'or of the queue that is asked for');
select is(trunkline.sleep(p_worker => 'w2', p_queues => array['c']), null, 'a queue without a scheduled job has none');
set trunkline.tenant = 'acme';
select trunkline.register_worker(p_worker => 'acme 1') \g /dev/null
select is(trunkline.sleep(p_worker => 'acme 1', p_queues => array['a', 'b']), null, 'nor has a tenant without one');
select is(trunkline.wake(p_worker => 'acme 1'), true, 'whose worker takes its flags back');
reset trunkline.tenant;
select trunkline_test.move_time('90 minutes') \g /dev/null
select is(trunkline.sleep(p_worker => 'w1'), :'later'::timestamptz, 'what is due is not to come any more: a claim takes it');

set session authorization trunkline_producer;
select trunkline.enqueue_many(p_jobs => jsonb_agg(jsonb_build_object('task', 'mail', 'queue', 'b', 'delay', '10 minutes'))) from generate_series(1, 100) \g /dev/null
set session authorization trunkline_worker;
select ok(trunkline.sleep(p_worker => 'w2', p_queues => array['a']) between trunkline.clock() and :'later'::timestamptz, 'behind a hundred others a due time is told too early, never too late');

select is(t.refusal($$select trunkline.sleep(p_worker => 'w9')$$) ->> 'code', 'unknown_worker', 'an unknown worker is refused');
select is(t.refusal($$select trunkline.sleep(p_worker => 'w1', p_queues => array[null])$$) ->> 'argument', 'p_queues', 'so is a queue without a name');
select is(t.flags(), array['w1 *', 'w2 a', 'w2 b', 'w2 c'], 'and leaves no flag');
set session authorization trunkline_producer;
select is(t.refusal($$select trunkline.sleep(p_worker => 'w1')$$) ->> 'sqlstate', '42501', 'a producer does not sleep');

select * from finish();
