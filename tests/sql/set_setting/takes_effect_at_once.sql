-- CP-38, CP-62, CP-63: settings have defaults, are readable by every role, and a change holds for the next call.
\ir ../helpers/tools.sql
select plan(10);

set session authorization trunkline_worker;
select results_eq(
  $$select name, value::interval, origin from trunkline.settings where name in ('heartbeat_interval', 'lease', 'reclaim_jitter', 'backpressure_delay') order by name$$,
  $$values ('backpressure_delay', interval '30 seconds', 'default'), ('heartbeat_interval', interval '30 seconds', 'default'),
    ('lease', interval '300 seconds', 'default'), ('reclaim_jitter', interval '60 seconds', 'default')$$,
  'a worker reads the defaults'
);
select is((select count(*) from trunkline.settings where description = '' or default_value is null), 0::bigint, 'each has a default and a description');
select trunkline.register_task(p_task => 'mail') \g /dev/null
select trunkline.register_task(p_task => 'own', p_lease => '50 seconds') \g /dev/null

set session authorization trunkline_operator;
select is(trunkline.set_setting(p_name => 'lease', p_value => '120 seconds'), '120 seconds', 'an operator changes one');
select results_eq(
  $$select value, origin, updated_by, updated_at is not null from trunkline.settings where name = 'lease'$$,
  $$values ('120 seconds', 'operator', 'trunkline_operator', true)$$,
  'who and when is kept'
);
set session authorization trunkline_worker;
select t.started('mail') as job \gset
select t.started('own') as own \gset
select is((t.job(:'job')).lease_expires_at - (t.job(:'job')).claimed_at, interval '120 seconds', 'the next claim has the new lease');
select is((t.job(:'own')).lease_expires_at - (t.job(:'own')).claimed_at, interval '50 seconds', 'a task with its own keeps that');

set session authorization trunkline_operator;
select is(trunkline.set_setting(p_name => 'lease', p_value => null), '300 seconds', 'null gives the default back');
select is((select origin from trunkline.settings where name = 'lease'), 'default', 'and says so');
set session authorization trunkline_worker;
select trunkline.heartbeat(p_worker => 'w1', p_jobs => array[:'job']::uuid[], p_attempts => array[1]) \g /dev/null
select is((t.job(:'job')).lease_expires_at - (t.job(:'job')).heartbeat_at, interval '300 seconds', 'the next heartbeat follows');
set session authorization trunkline_producer;
select is(t.refusal($$select trunkline.set_setting(p_name => 'lease', p_value => null)$$) ->> 'sqlstate', '42501', 'a producer changes none');

select * from finish();
