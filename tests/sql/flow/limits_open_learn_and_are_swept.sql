-- A worker learns when the next limit opens, later calls are charged what earlier ones used, and the duty leaves what still counts.
\ir ../helpers/tools.sql
\ir ../../support/internals/frozen.sql
select plan(27);

create function t.shown() returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select jsonb_object_agg(b.name, jsonb_strip_nulls(jsonb_build_object('in_use', nullif(b.in_use, 0), 'requests', nullif(b.requests_of_hour, 0), 'tokens', nullif(b.tokens_of_hour, 0), 'spent', b.spent, 'waiting', nullif(b.waiting, 0), 'paused', t.after_noon(b.paused_until))))
  from trunkline.buckets as b
$$;
create function t.put(p_task text, p_jobs integer default 1, p_more jsonb default '{}') returns void
language sql security definer set search_path = pg_catalog, pg_temp
as $$ select trunkline.enqueue_many((select jsonb_agg(jsonb_build_object('task', p_task) || p_more) from generate_series(1, p_jobs))) $$;
create function t.claim(p_task text, p_jobs integer default 10) returns bigint
language sql security definer set search_path = pg_catalog, pg_temp
as $$ select count(*) from trunkline.claim('w1', p_limit => p_jobs, p_tasks => array[p_task]) $$;
create function t.complete(p_task text, p_actual jsonb default null) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
  if p_actual is not null then
    perform trunkline.settle_job(j.job_id, j.attempt, p_actual) from trunkline.jobs as j where j.task = p_task and j.state = 'running';
  end if;
  perform trunkline.complete('w1', array_agg(j.job_id), array_agg(j.attempt)) from trunkline.jobs as j where j.task = p_task and j.state = 'running' having count(*) > 0;
end;
$$;
create function t.tokens(p_task text) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$ select string_agg(e.detail ->> 'tokens', ' ' order by (e.detail ->> 'tokens')::bigint) from trunkline.jobs as j, lateral trunkline.explain(j.job_id) as e where j.task = p_task and j.state = 'ready' and e.reason = 'limit' $$;
create function pg_temp.opening(p_queues text[] default null) returns interval language sql as $$
  select date_trunc('milliseconds', t.after_noon(trunkline.sleep('w1', p_queues)))
$$;
set session authorization trunkline_operator;
select
  trunkline.set_limit('rpm', '{"requests_per_minute": 2}'), trunkline.set_limit('slots', '{"concurrency": 1}'), trunkline.set_limit('hour', '{"tokens_per_hour": 100}'), trunkline.set_limit('day', '{"quota": 2, "quota_unit": "requests", "quota_period": "day"}'),
  trunkline.set_limit('key/{key}', '{"requests_per_minute": 5}'), trunkline.set_limit('pages', '{"quota": 1000, "quota_unit": "bytes", "quota_window": "2 days"}'),
  trunkline.register_task('rpm', p_limits => array['rpm']), trunkline.register_task('slots', p_limits => array['slots'], p_queue => 'narrow'), trunkline.register_task('hour', p_limits => array['hour'], p_cost => '{"tokens": 40}'),
  trunkline.register_task('day', p_limits => array['day'], p_queue => 'daily'), trunkline.register_task('both', p_limits => array['rpm', 'hour'], p_cost => '{"tokens": 40}', p_queue => 'both'), trunkline.register_task('key', p_limits => array['key/{key}']),
  trunkline.register_task('pages', p_limits => array['pages'], p_cost => '{"units": 10}') \g /dev/null
set session authorization trunkline_worker;
select trunkline.register_worker('w1', p_pulse_interval => '1 hour') \g /dev/null
select is(
  pg_temp.opening(),
  null,
  'nothing waits'
);
select t.put('rpm', 3), t.claim('rpm') \g /dev/null
select is(
  pg_temp.opening(),
  '00:01:02',
  'for requests of a minute'
);
select t.put('slots', 2), t.claim('slots') \g /dev/null
select is(
  array[pg_temp.opening(array['narrow']), pg_temp.opening()],
  '{NULL,00:01:02}',
  'for a slot there is no time'
);
select t.put('hour', 3), t.claim('hour') \g /dev/null
select t.put('day', 2), t.claim('day') \g /dev/null
select t.put('day', 1, '{"accepted": true}') \g /dev/null
select is(
  array[pg_temp.opening(array['default']), pg_temp.opening(array['daily']), pg_temp.opening(array['daily', 'narrow']), pg_temp.opening(array['empty'])],
  '{00:01:02,12:00:00,12:00:00,NULL}',
  'for each queue'
);
select t.put('both') \g /dev/null
select is(
  pg_temp.opening(array['both']),
  '01:00:02',
  'a job of two limits waits for the later one'
);
select trunkline_test.move_time('61.9 seconds') \g /dev/null
select is(
  pg_temp.opening(array['default']),
  '00:01:02',
  'shortly before'
);
select trunkline_test.move_time('0.1 seconds') \g /dev/null
select is(
  pg_temp.opening(array['default']),
  '00:01:02.05',
  'a limit with room opens at once'
);
select is(
  array[t.claim('rpm'), t.claim('both')],
  '{1,0}',
  'and its job starts'
);
select t.put('rpm', 1, '{"delay": "5 seconds"}') \g /dev/null
select is(
  pg_temp.opening(array['default']),
  '00:01:07',
  'what is scheduled counts too'
);
select trunkline.observe_limit('slots', '{"retry_after": 30}') from (select t.complete('slots')) as x \g /dev/null
select is(
  pg_temp.opening(array['narrow']),
  '00:01:32',
  'a pause is a time'
);

-- What calls used before is what later jobs are charged; one settlement in a hundred is looked at, and the first of all.
select t.draw(0) \g /dev/null
select t.complete('hour', '{"tokens": 20}') \g /dev/null
select t.put('hour') \g /dev/null
select is(
  t.tokens('hour'),
  '20 40',
  'the first settlement is learned'
);
select trunkline_test.move_time('2 hours') \g /dev/null
select t.claim('hour'), t.complete('hour', '{"tokens": 30}') \g /dev/null
select t.put('hour') \g /dev/null
select is(
  t.tokens('hour'),
  '22',
  'a sampled one moves it by a tenth'
);
select t.draw(0.5) \g /dev/null
select t.claim('hour'), t.complete('hour', '{"tokens": 90}') \g /dev/null
select t.put('hour'), t.put('hour', 1, '{"cost": {"tokens": 5}}') \g /dev/null
select is(
  t.tokens('hour'),
  '5 22',
  'others do not, and a cost that is named stays'
);
select t.put('pages'), t.claim('pages'), t.complete('pages', '{"bytes": 70}') \g /dev/null
select t.put('pages'), t.claim('pages') \g /dev/null
select is(
  t.shown() -> 'pages',
  '{"spent": 140}',
  'bytes are units'
);

-- A late end is noted: nobody knows when its call was.
set session authorization trunkline_operator;
select is(
  (select array_agg(l.name || ' ' || l.late || ' ' || l.late_tasks::text order by l.name) from trunkline.limits as l where l.late > 0),
  null,
  'no attempt was late'
);
set session authorization trunkline_worker;
select trunkline_test.move_time('2 hours') \g /dev/null
select t.put('rpm', 2), t.claim('rpm', 1) \g /dev/null
select trunkline_test.move_time('60 seconds') \g /dev/null
select t.complete('rpm'), t.claim('rpm', 1) \g /dev/null
select trunkline_test.move_time('60.001 seconds') \g /dev/null
select t.complete('rpm') \g /dev/null
set session authorization trunkline_operator;
select is(
  (select array_agg(l.name || ' ' || l.late || ' ' || l.late_tasks::text order by l.name) from trunkline.limits as l where l.late > 0),
  '{"rpm 5 {rpm}"}',
  'one that ran longer than its window'
);

-- The duty: charges that count stay, others go, the names a day later.
select t.put('key', 1, '{"payload": {"key": "a"}}'), t.put('key', 1, '{"payload": {"key": "b"}}'), t.claim('key', 1) \g /dev/null
select is(
  t.shown(),
  '{"day": {"spent": 2, "waiting": 1}, "rpm": {"waiting": 1, "requests": 2}, "hour": {"waiting": 3}, "key/a": {"waiting": 1}, "key/b": {"requests": 1}, "pages": {"spent": 140}, "slots": {"waiting": 1}}',
  'before'
);
select trunkline.sweep_buckets() from generate_series(1, 3) \g /dev/null
select is(
  t.shown(),
  '{"day": {"spent": 2, "waiting": 1}, "rpm": {"waiting": 1, "requests": 2}, "hour": {"waiting": 3}, "key/a": {"waiting": 1}, "key/b": {"requests": 1}, "pages": {"spent": 140}, "slots": {"waiting": 1}}',
  'right after'
);
select t.complete('key') \g /dev/null
select trunkline_test.move_time('3601 seconds') \g /dev/null
select trunkline.sweep_buckets() from generate_series(1, 3) \g /dev/null
select is(
  t.shown(),
  '{"day": {"spent": 2, "waiting": 1}, "rpm": {"waiting": 1}, "hour": {"waiting": 3}, "key/a": {"waiting": 1}, "key/b": {"requests": 1}, "pages": {"spent": 140}, "slots": {"waiting": 1}}',
  'an hour later'
);
select trunkline_test.move_time('24 hours') \g /dev/null
select trunkline.sweep_buckets() from generate_series(1, 4) \g /dev/null
select is(
  -- When its name goes depends on transactions of other databases of the server.
  t.shown() - 'key/b',
  '{"day": {"spent": 0, "waiting": 1}, "rpm": {"waiting": 1}, "hour": {"waiting": 3}, "key/a": {"waiting": 1}, "pages": {"spent": 140}, "slots": {"waiting": 1}}',
  'a day later'
);
select trunkline_test.move_time('24 hours') \g /dev/null
select trunkline.sweep_buckets() from generate_series(1, 4) \g /dev/null
select is(
  -- When its name goes depends on transactions of other databases of the server.
  t.shown() - 'key/b',
  '{"day": {"spent": 0, "waiting": 1}, "rpm": {"waiting": 1}, "hour": {"waiting": 3}, "key/a": {"waiting": 1}, "pages": {"spent": 0}, "slots": {"waiting": 1}}',
  'two days later'
);
select is(
  (select jsonb_agg(jsonb_build_array(u.limit, u.task, u.calls, u.requests, u.tokens, u.units) order by u.limit, u.task, u.calls, u.tokens) from trunkline.usage as u),
  '[["hour", "hour", 5, 5, 190, 0], ["pages", "pages", 1, 1, 0, 70]]',
  'and the ledger'
);
select is(
  (select array_agg(l.name || ' ' || l.late) from trunkline.limits as l where l.late > 0),
  '{"rpm 5"}',
  'a late attempt is remembered for a week'
);
select trunkline_test.move_time('5 days') \g /dev/null
select is(
  (select array_agg(l.name || ' ' || l.late) from trunkline.limits as l where l.late > 0),
  null,
  'and then no more'
);

-- The clock is set back: what lies ahead of it is moved to now.
set session authorization trunkline_worker;
select t.put('rpm', 5), t.claim('rpm'), trunkline.observe_limit('slots', '{"retry_after": 3000}') \g /dev/null
select trunkline_test.move_time('-3 days') \g /dev/null
select is(
  array[t.claim('rpm'), t.claim('slots')],
  '{0,0}',
  'ahead of the clock'
);
set session authorization trunkline_operator;
select trunkline.sweep_buckets() \g /dev/null
set session authorization trunkline_worker;
select is(
  -- When its name goes depends on transactions of other databases of the server.
  t.shown() - 'key/b',
  '{"day": {"spent": 0, "waiting": 1}, "rpm": {"waiting": 4, "requests": 2}, "hour": {"waiting": 3}, "key/a": {"waiting": 1}, "pages": {"spent": 0}, "slots": {"paused": "4 days 06:03:03.001", "waiting": 1}}',
  'the duty moves it to now'
);
select trunkline_test.move_time('62 seconds') \g /dev/null
select is(
  array[t.claim('rpm'), t.claim('slots')],
  '{2,0}',
  'so that it is over in time'
);

select * from finish();
