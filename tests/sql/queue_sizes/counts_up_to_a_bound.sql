-- What waits in a queue is counted exactly below 10,000 and no further, limited jobs among it.
\ir ../helpers/tools.sql
select plan(12);

set session authorization trunkline_operator;
select trunkline.set_limit(p_limit => 'api', p_parts => '{"concurrency": 1}') \g /dev/null
select trunkline.set_limit(p_limit => 'key/{k}', p_parts => '{"concurrency": 1}') \g /dev/null
select trunkline.register_task(p_task => 'mail'), trunkline.register_task(p_task => 'call', p_limits => '{api}'),
  trunkline.register_task(p_task => 'ask', p_limits => '{"key/{k}"}') \g /dev/null
select trunkline.enqueue_many(jsonb_agg(jsonb_build_object('task', 'mail', 'queue', 'some'))) from generate_series(1, 300) \g /dev/null
select trunkline.enqueue_many(jsonb_agg(jsonb_build_object('task', 'call', 'queue', 'some'))) from generate_series(1, 40) \g /dev/null
select trunkline.enqueue_many(jsonb_agg(jsonb_build_object('task', 'ask', 'queue', 'some', 'payload', jsonb_build_object('k', n::text)))) from generate_series(1, 5) as n \g /dev/null
select trunkline.enqueue_many(jsonb_agg(jsonb_build_object('task', 'mail', 'queue', 'some', 'delay', '1 hour'))) from generate_series(1, 7) \g /dev/null
select is(
  (select (ready, scheduled, blocked, running, dead, counted_up_to)::text from trunkline.queue_sizes() where queue = 'some'),
  '(345,7,0,0,0,10000)', 'a few are counted one by one'
);
select is((select ready_tasks from trunkline.queue_sizes() where queue = 'some'), '{"ask": 5, "call": 40, "mail": 300}'::jsonb, 'by task as well');
select is((select waiting from trunkline.limits where name = 'api'), 40::bigint, 'limits count theirs');
select is((select waiting from trunkline.limits where name = 'key/{k}'), 5::bigint, 'over all keys');

select trunkline_test.move_time('1 minute') \g /dev/null
select count(*) from generate_series(1, 11) as batch,
  lateral (select trunkline.enqueue_batch('mail', (select jsonb_agg('{}'::jsonb) from generate_series(1, 1000 + 0 * batch)))) as b \g /dev/null
select count(*) from generate_series(1, 11) as batch,
  lateral (select trunkline.enqueue_batch('call', (select jsonb_agg('{}'::jsonb) from generate_series(1, 1000 + 0 * batch)))) as b \g /dev/null
select is((select ready from trunkline.queue_sizes() where queue = 'default'), 10000::bigint, 'no further than the bound');
select is((select ready from trunkline.queues where queue = 'default'), 10000::bigint, 'nor does the view');
select is((select counted_up_to from trunkline.queues where queue = 'default'), 10000, 'which tells the bound');
select is((select ready from trunkline.queues where queue = 'some'), 345::bigint, 'other queues stay exact');
select is((select waiting from trunkline.limits where name = 'api'), 10000::bigint, 'limits stop there, too');
select is((select waiting from trunkline.buckets where name = 'api'), 10000::bigint, 'and their keys');

-- A job of the highest priority is not among the first ones that are counted.
select trunkline.enqueue(p_task => 'mail', p_priority => 49) \g /dev/null
select trunkline_test.move_time('1 hour') \g /dev/null
select ok((select oldest_ready_age > interval '1 hour' from trunkline.queues where queue = 'default'), 'the age of the oldest job is still known');
select is((select scheduled from trunkline.queues where queue = 'some'), 7::bigint, 'due jobs stay scheduled until somebody promotes them');

select * from finish();
