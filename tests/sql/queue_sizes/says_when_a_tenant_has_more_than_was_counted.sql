-- A session that acts for one tenant learns when its numbers stop early because of jobs of others.
\ir ../helpers/tools.sql
select plan(9);

set session authorization trunkline_operator;
select trunkline.register_task(p_task => 'mail'), trunkline.register_task(p_task => 'call') \g /dev/null
create temporary table sizes as select * from trunkline.queue_sizes() with no data;
create function pg_temp.jobs(p_tenant text, p_jobs integer, p_delay text default '0') returns void language sql as $$
  select trunkline.enqueue_many(jsonb_agg(jsonb_build_object('task', 'mail', 'queue', 'shared', 'tenant', p_tenant, 'delay', p_delay)))
  from generate_series(1, p_jobs)
$$;
select pg_temp.jobs('acme', 30), pg_temp.jobs('acme', 40, '1 hour') \g /dev/null
select trunkline.enqueue(p_task => 'call', p_queue => 'theirs', p_tenant => 'other') \g /dev/null

set trunkline.tenant = 'acme';
insert into sizes select * from trunkline.queue_sizes();
select is((select (queue, ready, scheduled, counted_up_to)::text from sizes), '(shared,30,40,10000)', 'a few are counted exactly');

reset trunkline.tenant;
select trunkline_test.move_time('1 minute') \g /dev/null
select pg_temp.jobs('other', 1000) from generate_series(1, 10) \g /dev/null
select pg_temp.jobs('acme', 5) \g /dev/null
set trunkline.tenant = 'acme';
delete from sizes;
insert into sizes select * from trunkline.queue_sizes();
select is((select count(*) from sizes), 1::bigint, 'queues without an own job are not shown');
select ok((select ready < 35 from sizes), 'jobs behind those of others are not counted');
select ok((select ready >= counted_up_to from sizes), 'which the bound tells');
select is((select ready_tasks ->> 'mail' from sizes), (select ready::text from sizes), 'tasks have the same number');
select is((select scheduled from sizes), 40::bigint, 'other numbers are complete');
select ok((select oldest_ready_at from sizes) = (select min(run_at) from trunkline.jobs where state = 'ready'), 'the oldest is an own job');

reset trunkline.tenant;
select is((select ready from trunkline.queue_sizes(p_queues => '{shared}')), 10000::bigint, 'all tenants together reach the bound');
select is((select array_agg(queue) from trunkline.queue_sizes(p_queues => '{theirs, unknown}')), '{theirs}', 'the given queues alone are counted');

select * from finish();
