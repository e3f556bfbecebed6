-- A quota counts what was claimed and settled by the hour, keeps a share from low priorities, and refuses once it is spent.
\ir ../helpers/tools.sql
\ir ../../support/internals/frozen.sql
select plan(31);

create function t.quota(p_name text) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select jsonb_strip_nulls(to_jsonb(q) || jsonb_build_object(
    'since', t.after_noon(q.since), 'resets_at', t.after_noon(q.resets_at), 'spent_at', t.after_noon(q.spent_at), 'refused_until', t.after_noon(q.refused_until)
  )) - '{name,limit}'::text[]
  from trunkline.quotas as q where q.name = p_name
$$;
create function t.explained(p_task text) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select jsonb_agg(distinct jsonb_build_array(e.reason, t.after_noon(e.until), e.detail - 'ahead'))
  from trunkline.jobs as j
  cross join lateral trunkline.explain(p_job => j.job_id) as e
  where j.task = p_task and j.state in ('ready', 'blocked') and e.reason <> 'no_worker'
$$;
create function t.complete(p_task text, p_actual jsonb default null) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_ended bigint;
begin
  if p_actual is not null then
    perform trunkline.settle_job(j.job_id, j.attempt, p_actual) from trunkline.jobs as j where j.task = p_task and j.state = 'running';
  end if;
  select count(*) into v_ended from (
    select trunkline.complete('w1', array[j.job_id], array[j.attempt]) from trunkline.jobs as j where j.task = p_task and j.state = 'running'
  ) as e;
  return v_ended;
end;
$$;
create function t.refused(p_task text, p_priority integer default 0) returns jsonb
language sql security definer set search_path = pg_catalog, pg_temp
as $$
  select jsonb_strip_nulls(r || jsonb_build_object('free_at', t.after_noon((r ->> 'free_at')::timestamptz))) - 'message' - 'hint'
  from t.refusal(format('select trunkline.enqueue(%L, p_priority => %s)', p_task, p_priority)) as r
$$;
create function pg_temp.started(p_task text) returns bigint language sql as $$
  select count(*) from trunkline.claim(p_worker => 'w1', p_limit => 10, p_tasks => array[p_task])
$$;
set session authorization trunkline_operator;
select
  trunkline.set_limit('rolling', '{"quota": 100, "quota_unit": "tokens", "quota_window": "2 hours", "quota_buffer": 0.9, "quota_low_share": 0.5}'),
  trunkline.set_limit('day', '{"quota": 10, "quota_unit": "requests", "quota_period": "day"}'),
  trunkline.set_limit('month', '{"quota": 10, "quota_unit": "pages", "quota_period": "month", "quota_refuses": false}'),
  trunkline.set_limit('tenant/{tenant}', '{"quota": 5, "quota_unit": "requests", "quota_window": "1 hour", "quota_buffer": 1}') \g /dev/null
select
  trunkline.register_task('rolling', p_limits => array['rolling'], p_cost => '{"tokens": 20}'), trunkline.register_task('day', p_limits => array['day']),
  trunkline.register_task('month', p_limits => array['month'], p_cost => '{"units": 4}'), trunkline.register_task('tenant', p_limits => array['tenant/{tenant}']) \g /dev/null
select is(
  t.quota('rolling'),
  '{"unit": "tokens", "quota": 100, "share": 0.0000, "since": "-02:00:00", "spent": 0, "window": "02:00:00", "allowed": 90, "refuses": true, "reserved": 0, "exhausted": false, "low_below": 0, "remaining": 90, "paused_low": false, "low_allowed": 50, "rate_per_hour": 0.000}',
  'a quota that nobody used'
);
select is(
  t.quota('day'),
  '{"unit": "requests", "quota": 10, "share": 0.0000, "since": "-12:00:00", "spent": 0, "period": "day", "allowed": 10, "refuses": true, "reserved": 0, "exhausted": false, "low_below": 0, "remaining": 10, "resets_at": "12:00:00", "paused_low": false, "low_allowed": 7, "rate_per_hour": 0.000}',
  'one of a day'
);
select is(
  t.quota('month') - 'since' - 'resets_at',
  '{"unit": "pages", "quota": 10, "share": 0.0000, "spent": 0, "period": "month", "allowed": 10, "refuses": false, "reserved": 0, "exhausted": false, "low_below": 0, "remaining": 10, "paused_low": false, "low_allowed": 7, "rate_per_hour": 0.000}',
  'one of a month'
);
select is(
  (select jsonb_build_array(q.since = date_trunc('month', trunkline.clock(), 'UTC'), q.resets_at = (date_trunc('month', trunkline.clock() at time zone 'UTC') + interval '1 month') at time zone 'UTC') from trunkline.quotas as q where q.name = 'month'),
  '[true, true]',
  'which ends with it'
);
select trunkline.enqueue('rolling', p_priority => -1) from generate_series(1, 3) \g /dev/null
select trunkline.enqueue('rolling') from generate_series(1, 5) \g /dev/null
select trunkline.enqueue('day') from generate_series(1, 12) \g /dev/null
select trunkline.enqueue('month') from generate_series(1, 4) \g /dev/null
set session authorization trunkline_worker;
select is(
  array[pg_temp.started('rolling'), pg_temp.started('day'), pg_temp.started('month')],
  '{4,10,2}',
  'up to nine tenths, and a day''s requests, and units'
);
select is(
  array[pg_temp.started('rolling'), pg_temp.started('day'), pg_temp.started('month')],
  '{0,0,0}',
  'then no more'
);
select is(
  t.quota('rolling'),
  '{"unit": "tokens", "quota": 100, "share": 0.8000, "since": "-02:00:00", "spent": 80, "window": "02:00:00", "allowed": 90, "refuses": true, "reserved": 80, "spent_at": "00:07:30", "exhausted": false, "low_below": 0, "remaining": 10, "paused_low": true, "low_allowed": 50, "rate_per_hour": 80.000}',
  'reserved while they run'
);
select is(
  t.quota('day'),
  '{"unit": "requests", "quota": 10, "share": 1.0000, "since": "-12:00:00", "spent": 10, "period": "day", "allowed": 10, "refuses": true, "reserved": 10, "spent_at": "00:00:00", "exhausted": true, "low_below": 0, "remaining": 0, "resets_at": "12:00:00", "paused_low": true, "low_allowed": 7, "rate_per_hour": 10.000, "refused_until": "12:00:00"}',
  'of a day'
);
select is(
  t.quota('month') - 'since' - 'resets_at',
  '{"unit": "pages", "quota": 10, "share": 0.8000, "spent": 8, "period": "month", "allowed": 10, "refuses": false, "reserved": 8, "spent_at": "00:15:00", "exhausted": false, "low_below": 0, "remaining": 2, "paused_low": true, "low_allowed": 7, "rate_per_hour": 8.000}',
  'of a month '
);
select is(
  t.explained('rolling'),
  '[["limit", "03:00:00", {"limit": "rolling", "status": "active", "tokens": 20, "requests": 1, "units_left": 10, "counted_up_to": 1000}]]',
  'why the rest waits'
);
select is(
  t.explained('day'),
  '[["limit", "12:00:00", {"limit": "day", "status": "active", "tokens": 0, "requests": 1, "units_left": 0, "counted_up_to": 1000}]]',
  'until the day ends'
);
select is(
  t.refused('day'),
  '{"code": "quota_spent", "unit": "requests", "limit": "day", "quota": 10, "spent": 10, "free_at": "12:00:00", "sqlstate": "TL035", "given_out_up_to": 10}',
  'a job for a spent quota is refused'
);
select is(
  t.refused('month'),
  null,
  'where it refuses'
);
select is(
  t.refused('rolling'),
  null,
  'one that has something left takes more'
);
-- What was really used.
select is(
  t.complete('rolling', '{"tokens": 5, "cost": 0.5}'),
  '4',
  'settled with less'
);
select is(
  t.quota('rolling'),
  '{"unit": "tokens", "quota": 100, "share": 0.2000, "since": "-02:00:00", "spent": 20, "window": "02:00:00", "allowed": 90, "refuses": true, "reserved": 0, "exhausted": false, "low_below": 0, "remaining": 70, "paused_low": false, "low_allowed": 50, "rate_per_hour": 20.000}',
  'gives back the rest'
);
select is(
  jsonb_build_array(pg_temp.started('rolling'), t.complete('rolling')),
  '[2, 2]',
  'low priorities have half of it'
);
select is(
  t.quota('rolling'),
  '{"unit": "tokens", "quota": 100, "share": 0.6000, "since": "-02:00:00", "spent": 60, "window": "02:00:00", "allowed": 90, "refuses": true, "reserved": 0, "spent_at": "00:30:00", "exhausted": false, "low_below": 0, "remaining": 30, "paused_low": true, "low_allowed": 50, "rate_per_hour": 60.000}',
  'so that they wait'
);
select is(
  t.explained('rolling'),
  '[["limit", "03:00:00", {"limit": "rolling", "status": "active", "tokens": 20, "requests": 1, "units_left": 30, "counted_up_to": 1000}]]',
  'and say so'
);
select trunkline_test.move_time('1 hour') \g /dev/null
select is(
  jsonb_build_array(pg_temp.started('rolling'), t.quota('rolling')),
  '[0, {"unit": "tokens", "quota": 100, "share": 0.6000, "since": "-01:00:00", "spent": 60, "window": "02:00:00", "allowed": 90, "refuses": true, "reserved": 0, "spent_at": "01:30:00", "exhausted": false, "low_below": 0, "remaining": 30, "paused_low": true, "low_allowed": 50, "rate_per_hour": 60.000}]',
  'an hour later'
);
select trunkline_test.move_time('1 hour') \g /dev/null
select is(
  jsonb_build_array(pg_temp.started('rolling'), t.quota('rolling')),
  '[0, {"unit": "tokens", "quota": 100, "share": 0.6000, "since": "00:00:00", "spent": 60, "window": "02:00:00", "allowed": 90, "refuses": true, "reserved": 0, "exhausted": false, "low_below": 0, "remaining": 30, "paused_low": true, "low_allowed": 50, "rate_per_hour": 30.000}]',
  'two hours later the first hour still counts'
);
select trunkline_test.move_time('59 minutes 59 seconds') \g /dev/null
select is(
  jsonb_build_array(pg_temp.started('rolling'), t.quota('rolling')),
  '[0, {"unit": "tokens", "quota": 100, "share": 0.6000, "since": "00:00:00", "spent": 60, "window": "02:00:00", "allowed": 90, "refuses": true, "reserved": 0, "exhausted": false, "low_below": 0, "remaining": 30, "paused_low": true, "low_allowed": 50, "rate_per_hour": 20.002}]',
  'until it is over'
);
select trunkline_test.move_time('1 second') \g /dev/null
select is(
  jsonb_build_array(pg_temp.started('rolling'), t.complete('rolling', '{"tokens": 90}'), t.quota('rolling')),
  '[2, 2, {"unit": "tokens", "quota": 100, "share": 0.0000, "since": "01:00:00", "spent": 0, "window": "02:00:00", "allowed": 90, "refuses": true, "reserved": 0, "exhausted": false, "low_below": 0, "remaining": 90, "paused_low": false, "low_allowed": 50, "rate_per_hour": 20.000}]',
  'then the low ones start'
);
select is(
  t.quota('rolling'),
  '{"unit": "tokens", "quota": 100, "share": 1.8000, "since": "01:00:00", "spent": 180, "window": "02:00:00", "allowed": 90, "refuses": true, "reserved": 0, "spent_at": "03:00:00", "exhausted": true, "low_below": 0, "remaining": 0, "paused_low": true, "low_allowed": 50, "rate_per_hour": 80.000, "refused_until": "06:00:00"}',
  'spent beyond the quota'
);
select is(
  t.refused('rolling'),
  '{"code": "quota_spent", "unit": "tokens", "limit": "rolling", "quota": 100, "spent": 180, "free_at": "06:00:00", "sqlstate": "TL035", "given_out_up_to": 90}',
  'new ones are refused'
);
-- Each tenant has its own.
set session authorization trunkline_producer;
select trunkline.enqueue('tenant', p_tenant => t) from unnest(array['a', 'b']) as t, generate_series(1, 7) \g /dev/null
set session authorization trunkline_worker;
select is(
  (select jsonb_object_agg(c.tenant, c.jobs) from (select c.tenant, count(*) as jobs from trunkline.claim('w1', p_limit => 100, p_tasks => '{tenant}') as c group by c.tenant) as c),
  '{"a": 5, "b": 5}',
  'each tenant has five'
);
select is(
  jsonb_build_array(t.quota('tenant/a'), t.quota('tenant/b')),
  '[{"unit": "requests", "quota": 5, "share": 1.0000, "since": "02:00:00", "spent": 5, "window": "01:00:00", "allowed": 5, "refuses": true, "reserved": 5, "spent_at": "03:00:00", "exhausted": true, "low_below": 0, "remaining": 0, "paused_low": true, "low_allowed": 3, "rate_per_hour": 5.000, "refused_until": "05:00:00"}, {"unit": "requests", "quota": 5, "share": 1.0000, "since": "02:00:00", "spent": 5, "window": "01:00:00", "allowed": 5, "refuses": true, "reserved": 5, "spent_at": "03:00:00", "exhausted": true, "low_below": 0, "remaining": 0, "paused_low": true, "low_allowed": 3, "rate_per_hour": 5.000, "refused_until": "05:00:00"}]',
  'of its own'
);
select is(
  t.complete('tenant'),
  '10',
  'without any settlement'
);
-- The next day.
select trunkline_test.move_time('8 hours 59 minutes 59 seconds') \g /dev/null
select is(
  jsonb_build_array(pg_temp.started('day'), t.quota('day')),
  '[0, {"unit": "requests", "quota": 10, "share": 1.0000, "since": "-12:00:00", "spent": 10, "period": "day", "allowed": 10, "refuses": true, "reserved": 10, "spent_at": "11:59:59", "exhausted": true, "low_below": 0, "remaining": 0, "resets_at": "12:00:00", "paused_low": true, "low_allowed": 7, "rate_per_hour": 0.833, "refused_until": "12:00:00"}]',
  'a second before midnight'
);
select trunkline_test.move_time('1 second') \g /dev/null
select is(
  jsonb_build_array(pg_temp.started('day'), t.quota('day')),
  '[2, {"unit": "requests", "quota": 10, "share": 0.0000, "since": "12:00:00", "spent": 0, "period": "day", "allowed": 10, "refuses": true, "reserved": 10, "spent_at": "1 day", "exhausted": false, "low_below": 0, "remaining": 10, "resets_at": "1 day 12:00:00", "paused_low": false, "low_allowed": 7, "rate_per_hour": 0.833}]',
  'at midnight'
);
set session authorization trunkline_operator;
select trunkline.sweep_buckets() \g /dev/null
select is(
  (select jsonb_agg(jsonb_build_array(u.limit, u.task, u.tenant, u.calls, u.requests, u.tokens, u.units, u.cost) order by u.day, u.limit, u.tenant) from trunkline.usage as u),
  '[["rolling", "rolling", null, 8, 8, 240, 0, 2.0]]',
  'in the ledger'
);

select * from finish();
