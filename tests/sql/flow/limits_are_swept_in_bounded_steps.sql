-- Each step of the duty returns how many rows it changed, is bounded, and leaves what still counts.
-- How many rows a run changes depends on transactions in other databases of the server, which the tests share.
\ir ../helpers/tools.sql
\ir ../../support/internals/frozen.sql
select plan(33);

-- Whether a run told a number.
create function t.sweep(p_limit integer default 1000) returns boolean
language sql security definer set search_path = pg_catalog, pg_temp
as $$ select trunkline.sweep_buckets(p_limit) >= 0 $$;
create function t.put(p_task text, p_jobs integer default 1, p_more jsonb default '{}') returns void
language sql security definer set search_path = pg_catalog, pg_temp
as $$ select trunkline.enqueue_many((select jsonb_agg(jsonb_build_object('task', p_task) || p_more) from generate_series(1, p_jobs))) $$;
create function t.run(p_task text, p_end text default 'complete') returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_jobs uuid[];
begin
  v_jobs := array(select c.job_id from trunkline.claim('w1', p_limit => 100, p_tasks => array[p_task]) as c);
  if p_end = 'complete' then
    perform trunkline.complete('w1', v_jobs, array_fill(1, array[cardinality(v_jobs)]));
  elsif p_end = 'fail' then
    perform trunkline.fail('w1', v_jobs, array_fill(1, array[cardinality(v_jobs)]), p_retryable => array_fill(false, array[cardinality(v_jobs)]));
  elsif p_end = 'settle' then
    perform trunkline.settle_job(j, 1, '{"tokens": 5, "requests": 2}') from unnest(v_jobs) as j;
  end if;
  return cardinality(v_jobs);
end;
$$;
create function t.names() returns text[]
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$ select array_agg(b.name order by b.name) from trunkline.buckets as b $$;
create function t.grants(p_count integer) returns bigint
language sql security definer set search_path = pg_catalog, pg_temp
as $$ select count(a.granted) from generate_series(1, p_count) as n, lateral trunkline.acquire('key/{key}', p_keys => jsonb_build_object('key', 'g' || 0 * n), p_ttl => '1 minute') as a $$;
set session authorization trunkline_operator;
select
  trunkline.set_limit('key/{key}', '{"requests_per_minute": 100, "concurrency": 100}'), trunkline.set_limit('tokens/{key}', '{"tokens_per_minute": 1000}'), trunkline.set_limit('quota/{key}', '{"quota": 1000, "quota_unit": "requests", "quota_period": "day"}'),
  trunkline.set_limit('frail/{key}', '{"breaker_failures": 2, "breaker_window": "5 minutes"}'),
  trunkline.register_task('key', p_limits => array['key/{key}']), trunkline.register_task('tokens', p_limits => array['tokens/{key}'], p_cost => '{"tokens": 10}'), trunkline.register_task('quota', p_limits => array['quota/{key}']),
  trunkline.register_task('frail', p_limits => array['frail/{key}']), trunkline.register_task('strict', p_limits => array['tokens/{key}'], p_cost => '{"tokens": 900}', p_dead_when_deferred => true) \g /dev/null
select is(
  t.sweep(),
  'true',
  'nothing to do'
);
select t.put('key', 2, '{"payload": {"key": "a"}}'), t.put('key', 1, '{"payload": {"key": "b"}}'), t.put('key', 1, '{"payload": {"key": "b"}, "queue": "other"}') \g /dev/null
select is(
  t.sweep(),
  'true',
  'jobs wait'
);
select is(
  t.run('key'),
  '4',
  'all of them end'
);
select is(
  t.sweep(),
  'true',
  'the buckets close step by step'
);
select is(
  t.names(),
  '{key/a,key/b}',
  'their names stay'
);
select t.put('key', 1, '{"payload": {"key": "a"}}') \g /dev/null
select is(
  jsonb_build_array(t.sweep(), t.run('key'), t.sweep()),
  '[true, 1, true]',
  'one is used again'
);
select t.put('key', 1, '{"payload": {"key": "a"}}') \g /dev/null
select is(
  jsonb_build_array(t.sweep(), t.sweep(), t.run('key')),
  '[true, true, 1]',
  'a job that comes while it closes'
);
select is(
  t.sweep(),
  'true',
  'and closes later'
);
select trunkline_test.move_time('3601 seconds') \g /dev/null
select is(
  t.sweep(),
  'true',
  'within the hour their charges count'
);
select trunkline_test.move_time('1 second') \g /dev/null
select is(
  t.sweep(),
  'true',
  'after it they go'
);
select trunkline_test.move_time('24 hours') \g /dev/null
select is(
  t.sweep(),
  'true',
  'a day later'
);
-- Settlements leave adjustments and lines of the ledger.
select t.put('tokens', 3, '{"payload": {"key": "a"}}'), t.put('tokens', 2, '{"payload": {"key": "b"}}') \g /dev/null
select is(
  t.run('tokens', 'settle'),
  '5',
  'five are settled'
);
select is(
  t.sweep(),
  'true',
  'the ledger is summed up'
);
select is(
  (select jsonb_agg(jsonb_build_array(u.limit, u.task, u.calls, u.requests, u.tokens)) from trunkline.usage as u),
  '[["tokens/{key}", "tokens", 5, 10, 25]]',
  'once'
);
select trunkline_test.move_time('2 hours 1 second') \g /dev/null
select is(
  t.sweep(1),
  'true',
  'adjustments that nothing counts, one at a time'
);
-- Quotas are merged by the hour.
select t.put('quota', 1, '{"payload": {"key": "a"}}'), t.run('quota'), t.put('quota', 1, '{"payload": {"key": "a"}}'), t.run('quota'), t.put('quota', 1, '{"payload": {"key": "b"}}'), t.run('quota') \g /dev/null
select is(
  t.sweep(),
  'true',
  'in the hour itself'
);
select trunkline_test.move_time('1 hour') \g /dev/null
select t.put('quota', 1, '{"payload": {"key": "a"}}'), t.run('quota') \g /dev/null
select is(
  t.sweep(),
  'true',
  'an hour later'
);
select is(
  (select array_agg(q.name || ' ' || q.spent order by q.name) from trunkline.quotas as q),
  '{"quota/a 3","quota/b 1"}',
  'with the same sums'
);
-- Grants that nobody settled.
select t.grants(3) \g /dev/null
select trunkline_test.move_time('1 day 60 seconds') \g /dev/null
select is(
  t.sweep(2),
  'true',
  'a day after they expired'
);
select trunkline_test.move_time('1 microsecond') \g /dev/null
select is(
  array[t.sweep(2), t.sweep(2), t.sweep(2), t.sweep(2), t.sweep(2)],
  '{t,t,t,t,t}',
  'they are booked, two at a time'
);
select is(
  (select jsonb_agg(jsonb_build_array(u.limit, u.calls, u.requests)) from trunkline.usage as u where u.limit = 'key/{key}'),
  '[["key/{key}", 3, 3]]',
  'as estimated'
);
-- Failures of breakers.
select t.put('frail', 3, '{"payload": {"key": "x"}}'), t.run('frail', 'fail') \g /dev/null
select is(
  array[t.sweep()::text, (select b.state || ' ' || b.failures from trunkline.breakers as b where b.name = 'frail/x')],
  '{true,"open 3"}',
  'failures that count stay'
);
select trunkline_test.move_time('5 minutes') \g /dev/null
select is(
  t.sweep(2),
  'true',
  'until the window is over'
);
select trunkline_test.move_time('1 microsecond') \g /dev/null
select is(
  array[t.sweep(2), t.sweep(2), t.sweep(2)],
  '{t,t,t}',
  'two at a time'
);
select is(
  trunkline.reset_breaker('frail/x'),
  '1',
  'a closed breaker'
);
select trunkline_test.move_time('1 day') \g /dev/null
select is(
  array[t.sweep()::text, (select b.reason from trunkline.breakers as b where b.name = 'frail/x')],
  '{true,reset}',
  'is kept for a day'
);
select trunkline_test.move_time('1 microsecond') \g /dev/null
select is(
  array[t.sweep()::text, (select b.reason from trunkline.breakers as b where b.name = 'frail/x')],
  '{true,reset}',
  'and then no more'
);
-- Jobs that are set aside, freed and buried.
select t.put('strict', 3, '{"payload": {"key": "s"}}'), t.put('tokens', 1, '{"payload": {"key": "s"}}') \g /dev/null
select t.sweep() \g /dev/null
begin;
set transaction isolation level repeatable read;
select trunkline.set_limit('tokens/{key}', '{"tokens_per_minute": 899}') \g /dev/null
commit;
select is(
  array[t.sweep(), t.sweep(), t.sweep(), t.sweep()],
  '{t,t,t,t}',
  'a limit that was lowered in an old snapshot is left to the duty'
);
select is(
  (select array_agg(j.task || ' ' || j.state order by j.task) from trunkline.jobs as j where j.state in ('ready', 'blocked')),
  '{"strict blocked","strict blocked","strict blocked","tokens ready"}',
  'which set them aside'
);
begin;
set transaction isolation level repeatable read;
select trunkline.set_limit('tokens/{key}', '{"tokens_per_minute": 900}') \g /dev/null
commit;
select is(
  array[t.sweep(), t.sweep()],
  '{t,t}',
  'and frees them'
);
select trunkline.set_limit('tokens/{key}', '{"tokens_per_minute": 899}') \g /dev/null
select trunkline_test.move_time('24 hours 1 microsecond') \g /dev/null
select is(
  t.sweep(2),
  'true',
  'a day later it buries them'
);
select is(
  (select array_agg(d.task || ' ' || d.reason) from trunkline.dead_letters as d where d.task = 'strict'),
  '{"strict cost_over_limit","strict cost_over_limit"}',
  'two at a time'
);
select t.sweep(2) \g /dev/null
select is(
  (select array_agg(d.task || ' ' || d.reason) from trunkline.dead_letters as d where d.task = 'strict'),
  '{"strict cost_over_limit","strict cost_over_limit","strict cost_over_limit"}',
  'then the rest'
);

select * from finish();
